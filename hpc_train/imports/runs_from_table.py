"""A foreign table -> its runs and their measurements."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from hpc_train.errors import LogParseError
from hpc_train.imports.csv_table import ABSENT, ResultTable, number, whole
from hpc_train.imports.duplicates import RowContent, refuse_same_rows, significant_digits
from hpc_train.imports.header import LABEL, TableColumn, columns, declared_scaling, with_scaling
from hpc_train.imports.run_state import OK, run_state
from hpc_train.imports.table_notes import table_notes
from hpc_train.model.expected_study import EXCLUDED, ExpectedRun, ExpectedStudy, undeclared
from hpc_train.model.record import UNITS, Record, Scope
from hpc_train.model.result_columns import (
    BATCH,
    PER_GPU,
    RATES_PER_GPU,
    RESULTS,
    complete_sizes,
)
from hpc_train.model.study import Warmup

_SCOPES: dict[str, Scope] = {
    "memory": "per_rank",
    "mfu": "per_gpu",
    **dict.fromkeys(PER_GPU, "per_gpu"),
}
_FRACTIONS = ("accuracy", "mfu")
_ANY_SIGN = ("loss",)
# Settings, which repetitions share.
_GIVEN = frozenset({BATCH, "learning_rate", "samples", "steps"})
_PARSED = ("measure", "size")
_RESULTS = (*RESULTS, *RATES_PER_GPU)
_T = TypeVar("_T")


class _Row(NamedTuple):
    """The cells of one row with a value, by the name of their column."""

    place: str
    line: int
    cells: dict[TableColumn, str]

    def of(self, kind: str) -> dict[str, str]:
        return {column.name: text for column, text in self.cells.items() if column.kind == kind}

    def parsed(self, name: str, read: Callable[[], _T]) -> _T:
        """Return the parsed value, or raise an error with its place."""
        try:
            return read()
        except ValueError as wrong:
            raise LogParseError(f"{self.place}: {name}: {wrong}", "correct this cell") from None


def table_study(tables: Sequence[ResultTable]) -> tuple[ExpectedStudy, tuple[Record, ...]]:
    """Return the runs of tables, one per row, and their measurements.

    samples_per_second = global_batch_size / step_time if only these two are given. Runs of several
    tables are distinguished by the names of the tables.

    Raises:
        LogParseError: a table, a column or a cell is invalid, with its place.
    """
    runs: list[ExpectedRun] = []
    records: list[Record] = []
    notes: list[str] = []
    places: dict[Any, str] = {}
    for table in tables:
        path = table.path
        meanings = columns(table)
        rows = list(_rows(table, meanings))
        names = _names(rows, f"{path.stem}: " if len(tables) > 1 else "")
        measures = [_measured(row) for row in rows]
        contents = map(_content, rows, measures)
        refuse_same_rows((one for one in contents if one.digits), places)
        for name, row, measured in zip(names, rows, measures, strict=True):
            runs.append(_run(name, row, measured))
            records += _records(runs[-1], path, row.line, measured)
        notes += table_notes(table, meanings, [row.of("measure") for row in rows])
    kept, scaling = declared_scaling(runs)
    expected = tuple(_numbered(kept))
    study = undeclared(tables[0].path.stem, expected, Warmup(steps=0), tuple(notes))
    return msgspec.structs.replace(study, scaling=scaling), tuple(records)


def _rows(table: ResultTable, meanings: Sequence[TableColumn]) -> Iterator[_Row]:
    for line, cells in table.rows:
        named = {column: text for column, text in zip(meanings, cells, strict=True) if column.name}
        known = {column: text for column, text in named.items() if text not in ABSENT}
        yield _Row(f"{table.path}:{line}", line, known)


def _names(rows: Sequence[_Row], before: str) -> list[str]:
    lines: dict[str, str] = {}
    for count, row in enumerate(rows, start=1):
        name = before + row.of("run").get("run", f"row {count}")
        if name in lines:
            raise LogParseError(
                f"{row.place}: a second run called {name!r}; the first is {lines[name]}",
                "give each row another name, or add a column `repetition`",
            )
        lines[name] = row.place
    return list(lines)


def _measured(row: _Row) -> dict[str, float]:
    found = {
        column.name: row.parsed(column.name, functools.partial(_value, column, text))
        for column, text in row.cells.items()
        if column.kind == "measure"
    }
    if BATCH in found and "step_time" in found:
        found.setdefault("samples_per_second", found[BATCH] / found["step_time"])
    return found


def _content(row: _Row, measured: Mapping[str, float]) -> RowContent:
    values = {name: float(f"{value:.12g}") for name, value in measured.items()}
    others = {column: text for column, text in row.cells.items() if column.kind not in _PARSED}
    texts = {column.name: text for column, text in others.items()}
    name = texts.pop("run", "")
    results = (text for found, text in row.of("measure").items() if found not in _GIVEN)
    return RowContent(
        row.place,
        name,
        max(map(significant_digits, results), default=0),
        tuple(sorted((texts | _sizes(row) | values).items())),
    )


def _value(column: TableColumn, text: str) -> float:
    name = column.name
    ours = UNITS.get(PER_GPU.get(name, name), "s")
    value = number(text, column.unit or ours) * column.factor
    if name in _FRACTIONS and not 0 <= value <= 1:
        raise ValueError(f"{text} must be a fraction, from 0 to 1")
    if name in (*_RESULTS, BATCH) and value <= 0:
        raise ValueError(f"{text} must be above 0; leave the cell empty if nothing was measured")
    if value < 0 and name not in _ANY_SIGN:
        raise ValueError(f"{text} must not be negative")
    return value


def _records(
    run: ExpectedRun, path: Path, line: int, measured: dict[str, float]
) -> Iterator[Record]:
    gpus = run.sizes.get("nodes", 0) * run.sizes.get("gpus_per_node", 0)
    for name, value in measured.items():
        metric, scope = PER_GPU.get(name, name), _SCOPES.get(name, "global")
        if name in PER_GPU and metric != "tflops" and gpus and metric not in measured:
            # One process may drive several GPUs.
            value, scope = value * gpus, "global"
        yield Record(
            run=run.run_id, source=str(path), line=line, parser="table", metric=metric,
            value=value, unit=UNITS[metric], scope=scope,
        )  # fmt: skip


def _run(name: str, row: _Row, measured: dict[str, float]) -> ExpectedRun:
    cells = row.of("run")
    state, problem = run_state(cells, row.place)
    if state == OK and not any(result in measured for result in _RESULTS):
        problem = problem or f"{row.place}: no time and no rate in this row"
    if "exclude" in cells:
        state, problem = EXCLUDED, cells["exclude"]
    wall = [_timed(row, column) for column in row.cells if column.name == "wall_s"]
    return ExpectedRun(
        run_id=name,
        axes=row.parsed(LABEL, lambda: with_scaling(row.of("axis"))),
        repetition=1,
        topology=None,
        state=state,
        problem=problem,
        sizes=_sizes(row),
        conditions=row.of("condition"),
        restarts=row.parsed("restarts", lambda: whole(cells.get("restarts", "0"), 0)),
        wall_s=next(iter(wall), None),
    )


def _timed(row: _Row, column: TableColumn) -> float | None:
    return row.parsed("wall_s", lambda: _value(column, row.cells[column])) or None


def _sizes(row: _Row) -> dict[str, int]:
    given = {
        name: row.parsed(name, lambda name=name, text=text: whole(text, _least(name)))  # type: ignore[misc]
        for name, text in row.of("size").items()
    }
    if not given:
        raise LogParseError(
            f"{row.place}: no size in this row: every cell of nodes, gpus … is empty",
            "a failed job also has a size; state the requested one",
        )
    return row.parsed("size", lambda: complete_sizes(given))


def _least(name: str) -> int:
    """Return the minimum of a size: 0 for GPUs, 1 for nodes."""
    return 0 if name == "gpus_per_node" else 1


def _numbered(runs: Sequence[ExpectedRun]) -> Iterator[ExpectedRun]:
    counts: Counter[str] = Counter()
    for run in runs:
        key = repr((sorted(run.sizes.items()), run.axes, run.conditions))
        counts[key] += 1
        yield msgspec.structs.replace(run, repetition=counts[key])
