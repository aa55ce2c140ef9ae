"""The rows of a table -> their kinds: those with the same sizes, axes, conditions and end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpc_train.errors import LogParseError
from hpc_train.imports.csv_table import ResultTable
from hpc_train.imports.header import LABEL, TableColumn, with_scaling
from hpc_train.imports.run_state import OK, run_state
from hpc_train.imports.table_cells import Cells, Floats, Ints
from hpc_train.model.expected_study import EXCLUDED, ExpectedRun
from hpc_train.model.result_columns import JOB_ENERGY, complete_sizes

_MOST = 10**9
_MOST_CODES = 2**62
_T = TypeVar("_T")


class RowKinds(NamedTuple):
    """A run without a name for each kind of rows, and the kind of each row."""

    runs: list[ExpectedRun]
    kind: Ints


class _KindRow(NamedTuple):
    """The first row of a kind: its place, and its cells by the kind and name of their column."""

    place: str
    cells: dict[TableColumn, str]
    sizes: dict[str, int]
    has_result: bool

    def of(self, kind: str) -> dict[str, str]:
        return {column.name: text for column, text in self.cells.items() if column.kind == kind}

    def parsed(self, name: str, read: Callable[[], _T]) -> _T:
        """Return the parsed value, or raise an error with its place."""
        try:
            return read()
        except ValueError as wrong:
            raise LogParseError(f"{self.place}: {name}: {wrong}", "correct this cell") from None


def count_columns(meanings: Sequence[TableColumn]) -> Iterator[tuple[int, TableColumn, int]]:
    """Yield the columns of whole numbers with their place and smallest value."""
    for place, column in enumerate(meanings):
        if column.kind == "size" or column.name == "restarts":
            # A node has one GPU or none.
            least = 0 if column.name in ("gpus_per_node", "restarts") else 1
            yield place, column, least


def refused_counts(numbers: Floats, least: int) -> NDArray[np.bool_]:
    """Return which cells of a column are no whole number from `least` up."""
    with np.errstate(invalid="ignore"):
        sound = (numbers == np.floor(numbers)) & (numbers >= least) & (numbers <= _MOST)
    found: NDArray[np.bool_] = ~np.isnan(numbers) & ~sound
    return found


def row_kinds(
    table: ResultTable,
    meanings: Sequence[TableColumn],
    cells: Cells,
    has_result: NDArray[np.bool_],
) -> RowKinds:
    """Return the kinds of the rows in order of appearance.

    Raises:
        LogParseError: a size, a state or another cell of the first such row is invalid.
    """
    named = [place for place in cells.texts if meanings[place].name not in ("run", JOB_ENERGY)]
    keys = [cells.texts[place].codes for place in named]
    keys += [_codes(cells.numbers[place]) for place, *_ in count_columns(meanings)]
    # The problem of a row without a result names it.
    rows = np.arange(len(has_result))
    kind = combined([*keys, np.where(has_result, -1, rows)])
    first = np.flatnonzero(~pd.Series(kind).duplicated().to_numpy())
    runs = [_run(_row(table, meanings, cells, row, has_result)) for row in first.tolist()]
    return RowKinds(runs, kind)


def combined(columns: Sequence[Ints]) -> Ints:
    """Number the different combinations of codes from -1 up, in order of appearance."""
    found, size = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        if len(column) and (column != column[0]).any():
            width = int(column.max()) + 2
            if size * width >= _MOST_CODES:
                found = pd.factorize(found)[0].astype(np.int64)
                size = int(found.max()) + 1
            found = found * width + column + 1
            size *= width
    return pd.factorize(found)[0].astype(np.int64)


def _codes(numbers: Floats) -> Ints:
    return pd.factorize(numbers)[0].astype(np.int64)


def _row(
    table: ResultTable,
    meanings: Sequence[TableColumn],
    cells: Cells,
    row: int,
    has_result: NDArray[np.bool_],
) -> _KindRow:
    texts = {meanings[place]: column.cell(row) for place, column in cells.texts.items()}
    counts = {
        column.name: int(cells.numbers[place][row])
        for place, column, _ in count_columns(meanings)
        if not np.isnan(cells.numbers[place][row])
    }
    known = {column: text for column, text in texts.items() if text is not None}
    return _KindRow(table.where(row), known, counts, bool(has_result[row]))


def _run(row: _KindRow) -> ExpectedRun:
    cells = row.of("run")
    state, problem = run_state(cells, row.place)
    if state == OK and not row.has_result:
        problem = problem or f"{row.place}: no time and no rate in this row"
    if "exclude" in cells:
        state, problem = EXCLUDED, cells["exclude"]
    return ExpectedRun(
        run_id="",
        axes=row.parsed(LABEL, lambda: with_scaling(row.of("axis"))),
        repetition=1,
        topology=None,
        state=state,
        problem=problem,
        sizes=_sizes(row),
        conditions=row.of("condition"),
        restarts=row.sizes.get("restarts", 0),
    )


def _sizes(row: _KindRow) -> dict[str, int]:
    given = {name: size for name, size in row.sizes.items() if name != "restarts"}
    if not given:
        raise LogParseError(
            f"{row.place}: no size in this row: every cell of nodes, gpus … is empty",
            "a failed job also has a size; state the requested one",
        )
    return row.parsed("size", lambda: complete_sizes(given))
