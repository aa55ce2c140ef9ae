"""The columns of a table on whole jobs -> duration and energy of each job."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hpc_train.errors import LogParseError
from hpc_train.imports.csv_table import ResultTable
from hpc_train.imports.header import TableColumn
from hpc_train.imports.number_cells import joules
from hpc_train.imports.table_cells import Cells, Floats, Texts
from hpc_train.model.result_columns import JOB_ENERGY


def durations(meanings: Sequence[TableColumn], cells: Cells, rows: int) -> Floats:
    """Return the duration of each job [s]; NaN if it is unknown or 0."""
    for place, column in enumerate(meanings):
        if column.name == "wall_s":
            found = cells.numbers[place] * column.factor
            return np.where(found > 0, found, np.nan)
    return np.full(rows, np.nan)


def energies(table: ResultTable, meanings: Sequence[TableColumn], cells: Cells) -> Floats:
    """Return the energy of each job [J]; NaN if it is unknown, as an energy of 0 is.

    Raises:
        LogParseError: a cell is no energy.
    """
    for place, column in enumerate(meanings):
        if column.name == JOB_ENERGY:
            return _energies(table, column, cells.texts[place])
    return np.full(len(table.lines), np.nan)


def _energies(table: ResultTable, column: TableColumn, texts: Texts) -> Floats:
    values = []
    for code, text in enumerate(texts.names):
        try:
            values.append(joules(text, column.unit or "J") * column.factor)
        except ValueError as wrong:
            where = table.where(int((texts.codes == code).argmax()))
            raise LogParseError(f"{where}: {column.name}: {wrong}", "correct this cell") from None
    return np.array([*values, np.nan], dtype=np.float64)[texts.codes]
