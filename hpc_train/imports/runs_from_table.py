"""Foreign tables -> their runs, one for each row, and their measurements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeVar

import msgspec

from hpc_train.errors import LogParseError
from hpc_train.imports.csv_table import ResultTable
from hpc_train.imports.header import LABEL, TableColumn, columns, declared_scaling, with_scaling
from hpc_train.imports.measure_columns import RESULT_COLUMNS, measurements, value_of, with_rate
from hpc_train.imports.number_cells import ABSENT, number, whole
from hpc_train.imports.run_names import run_names, table_names
from hpc_train.imports.run_state import OK, run_state
from hpc_train.imports.same_rows import RowContents, refuse_same_rows
from hpc_train.imports.table_notes import table_notes
from hpc_train.imports.workbook import sheet_of
from hpc_train.model.expected_study import EXCLUDED, ExpectedRun, ExpectedStudy, undeclared
from hpc_train.model.record import UNITS, Record
from hpc_train.model.result_columns import complete_sizes
from hpc_train.model.study import Warmup

_T = TypeVar("_T")
_NUMBERS = ("restarts", "wall_s")


class _Row(NamedTuple):
    """The cells of a row by their column: texts, whole numbers, values, what was written, time."""

    place: str
    texts: dict[TableColumn, str]
    counts: dict[str, int]
    values: dict[str, float]
    written: dict[str, float]
    wall_s: list[float]

    def of(self, kind: str) -> dict[str, str]:
        """Return the texts of the columns of a kind, by name."""
        return {column.name: text for column, text in self.texts.items() if column.kind == kind}

    def parsed(self, name: str, read: Callable[[], _T]) -> _T:
        """Return the parsed value, or raise an error with its place."""
        try:
            return read()
        except ValueError as wrong:
            raise LogParseError(f"{self.place}: {name}: {wrong}", "correct this cell") from None


class _TableRuns(NamedTuple):
    """The runs of one table, with names, their measurements, what they hold, and notes."""

    runs: list[ExpectedRun]
    records: list[Record]
    contents: list[RowContents]
    notes: tuple[str, ...]


def table_study(tables: Sequence[ResultTable]) -> tuple[ExpectedStudy, list[Record]]:
    """Return the runs of tables, one per row, and their measurements.

    samples_per_second = global_batch_size / step_time if only these two are given. Runs of several
    tables are distinguished by the names of the tables.

    Raises:
        LogParseError: a table, a column or a cell is invalid, with its place.
    """
    titles = table_names([one.path for one in tables])
    before = [f"{title}: " if len(titles) > 1 else "" for title in titles]
    parts = list(map(_of_table, tables, before))
    refuse_same_rows([row for one in parts for row in one.contents])
    runs, scaling = declared_scaling([run for one in parts for run in one.runs])
    notes = tuple(chain.from_iterable(one.notes for one in parts))
    study = undeclared(
        sheet_of(tables[0].path)[0].stem, _with_repetitions(runs), Warmup(steps=0), notes
    )
    records = [record for one in parts for record in one.records]
    return msgspec.structs.replace(study, scaling=scaling), records


def _of_table(table: ResultTable, before: str) -> _TableRuns:
    meanings = columns(table)
    rows = [_row(table, meanings, place) for place in range(len(table.rows))]
    runs = list(map(_run, rows))
    others = [row.of("unused") for row in rows]
    stated = [row.of("run").get("run") for row in rows]
    names = run_names(table, stated, before, others)
    runs = [
        msgspec.structs.replace(run, run_id=name) for run, name in zip(runs, names, strict=True)
    ]
    contents = [
        RowContents(
            row.place, row.values, row.written, run.sizes,
            {**row.of("axis"), **row.of("condition"), **row.of("run"), "run": ""}, name, more,
        )
        for row, run, name, more in zip(rows, runs, stated, others, strict=True)
    ]  # fmt: skip
    records = list(
        chain.from_iterable(map(_records, [table] * len(rows), range(len(rows)), rows, runs))
    )
    notes = table_notes(table, meanings, _distinct(meanings, rows), [row.values for row in rows])
    return _TableRuns(runs, records, contents, tuple(notes))


def _row(table: ResultTable, meanings: Sequence[TableColumn], place: int) -> _Row:
    """Return the cells of a row.

    Raises:
        LogParseError: a number is invalid.
    """
    row = _Row(table.where(place), {}, {}, {}, {}, [])
    for column, text in zip(meanings, table.rows[place][1], strict=True):
        if text not in ABSENT and column.name:
            row.parsed(column.name, partial(_add, row, column, text))
    return row._replace(values=with_rate(row.values))


def _add(row: _Row, column: TableColumn, text: str) -> None:
    """Add a cell to a row.

    Raises:
        ValueError: its number is invalid.
    """
    name = column.name
    if column.kind == "size" or name == "restarts":
        # A node has one GPU or none.
        row.counts[name] = whole(text, 0 if name in ("gpus_per_node", "restarts") else 1)
    elif name == "wall_s":
        row.wall_s.append(value_of(column, text))
    elif column.kind == "measure":
        row.values[name] = value_of(column, text)
        row.written[name] = number(text, column.unit or "1")
    else:
        row.texts[column] = text


def _run(row: _Row) -> ExpectedRun:
    cells = row.of("run")
    state, problem = run_state(cells, row.place)
    if state == OK and not any(name in RESULT_COLUMNS for name in row.values):
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
        restarts=row.counts.get("restarts", 0),
        wall_s=next(iter(row.wall_s), None) or None,
    )


def _sizes(row: _Row) -> dict[str, int]:
    given = {name: size for name, size in row.counts.items() if name != "restarts"}
    if not given:
        raise LogParseError(
            f"{row.place}: no size in this row: every cell of nodes, gpus … is empty",
            "a failed job also has a size; state the requested one",
        )
    return row.parsed("size", lambda: complete_sizes(given))


def _records(table: ResultTable, place: int, row: _Row, run: ExpectedRun) -> Iterator[Record]:
    gpus = run.sizes.get("nodes", 0) * run.sizes.get("gpus_per_node", 0)
    for metric, scope, value in measurements(row.values, gpus):
        yield Record(
            run=run.run_id,
            source=str(table.path),
            line=table.rows[place][0],
            parser="table",
            metric=metric,
            value=value,
            unit=UNITS.get(metric, "1"),
            scope=scope,
        )


def _distinct(meanings: Sequence[TableColumn], rows: Sequence[_Row]) -> dict[int, int]:
    """Return the number of different texts of each axis, by its place."""
    return {
        place: len({row.texts[column] for row in rows if column in row.texts})
        for place, column in enumerate(meanings)
        if column.kind == "axis"
    }


def _with_repetitions(runs: Sequence[ExpectedRun]) -> tuple[ExpectedRun, ...]:
    """Number the runs of one size with the same axes and conditions, in order."""
    counts: Counter[str] = Counter()
    found = []
    for run in runs:
        key = repr((sorted(run.sizes.items()), run.axes, run.conditions))
        counts[key] += 1
        found.append(msgspec.structs.replace(run, repetition=counts[key]))
    return tuple(found)
