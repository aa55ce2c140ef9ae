"""Tables, and their column `run` -> the names of runs, each of one run only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from hpc_train.errors import LogParseError
from hpc_train.imports.csv_table import ResultTable
from hpc_train.imports.table_cells import Texts
from hpc_train.imports.workbook import sheet_of

# Columns that only tell jobs with equal names or results apart.
REPETITION = ("repetition", "rep")


def table_names(paths: Sequence[Path]) -> list[str]:
    """Return the names of tables: those of their files, and of the sheets of one workbook."""
    split = [sheet_of(path) for path in paths]
    stems = [file.stem for file, _ in split]
    return [
        f"{stem}:{sheet}" if sheet and stems.count(stem) > 1 else stem
        for stem, (_, sheet) in zip(stems, split, strict=True)
    ]


def run_names(
    table: ResultTable,
    stated: Texts | None,
    before: str,
    more: Callable[[], Mapping[str, Texts]],
) -> list[str]:
    """Return the name of each row, after `before`; `stated` is the column `run`.

    Rows with one name are distinguished by a column `repetition`; `more` reads such columns.

    Raises:
        LogParseError: two rows have one name.
    """
    usual = [f"{before}row {count}" for count in range(1, len(table.lines) + 1)]
    if stated is None:
        return usual
    known = [f"{before}{name}" for name in stated.names]
    names = [
        usual[row] if code < 0 else known[code] for row, code in enumerate(stated.codes.tolist())
    ]
    if _again(names):
        names = _with_repetitions(names, more())
    for row in _again(names):
        raise LogParseError(
            f"{table.where(row)}: a second run called {names[row]!r}; the first is "
            f"{table.where(names.index(names[row]))}",
            "give each row another name, or add a column `repetition`",
        )
    return names


def _again(names: Sequence[str]) -> list[int]:
    """Return the rows whose name an earlier row has."""
    found: list[int] = np.flatnonzero(pd.Series(names, dtype=object).duplicated()).tolist()
    return found


def _with_repetitions(names: list[str], columns: Mapping[str, Texts]) -> list[str]:
    """Return `a-r1`, `a-r2` for two rows `a`, as runs of a study are called."""
    for heading, column in columns.items():
        if heading.strip().lower() in REPETITION:
            several = pd.Series(names, dtype=object).duplicated(keep=False)
            return [
                f"{name}-r{cell}" if again and (cell := column.cell(row)) else name
                for row, (name, again) in enumerate(zip(names, several, strict=True))
            ]
    return names
