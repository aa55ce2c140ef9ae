"""Foreign tables -> their runs and their measurements, as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec
import numpy as np
import pandas as pd

from hpc_train.errors import LogParseError
from hpc_train.imports.csv_table import ResultTable
from hpc_train.imports.header import TableColumn, columns, declared_scaling
from hpc_train.imports.job_columns import durations, energies
from hpc_train.imports.kinds_of_rows import (
    RowKinds,
    count_columns,
    refused_counts,
    row_kinds,
)
from hpc_train.imports.measure_columns import (
    RESULT_COLUMNS,
    SCOPES,
    MeasuredRecords,
    Measures,
    records_of,
    refused,
    value_of,
    with_rate,
)
from hpc_train.imports.number_cells import whole
from hpc_train.imports.run_names import run_names, table_names
from hpc_train.imports.same_rows import RowContents, refuse_same_rows
from hpc_train.imports.table_cells import Cells, Floats, Ints, Texts, read_cells
from hpc_train.imports.table_notes import table_notes
from hpc_train.imports.workbook import sheet_of
from hpc_train.model.expected_study import ExpectedRun, ExpectedStudy, undeclared
from hpc_train.model.run_columns import RunColumns, RunFields
from hpc_train.model.study import Warmup
from hpc_train.model.table_records import TableRecords

_NUMBERS = ("restarts", "wall_s")


class _TableRuns(NamedTuple):
    """What one table holds: its kinds of rows, and a value of each other column for each row."""

    table: ResultTable
    kinds: RowKinds
    names: list[str]
    wall_s: Floats
    job_energy_j: Floats
    records: MeasuredRecords
    contents: RowContents
    notes: tuple[str, ...]


def table_study(tables: Sequence[ResultTable]) -> tuple[ExpectedStudy, TableRecords]:
    """Return the runs of tables, one per row, and their measurements.

    samples_per_second = global_batch_size / step_time if only these two are given. Runs of several
    tables are distinguished by the names of the tables.

    Raises:
        LogParseError: a table, a column or a cell is invalid, with its place.
    """
    titles = table_names([one.path for one in tables])
    before = [f"{title}: " if len(titles) > 1 else "" for title in titles]
    parts = list(map(_of_table, tables, before))
    refuse_same_rows([one.contents for one in parts])
    kinds, scaling = declared_scaling([kind for one in parts for kind in one.kinds.runs])
    first = _starts([len(one.kinds.runs) for one in parts])
    kind = np.concatenate([one.kinds.kind + n for one, n in zip(parts, first, strict=True)])
    names = list(chain.from_iterable(one.names for one in parts))
    wall_s = np.concatenate([one.wall_s for one in parts])
    energy_j = np.concatenate([one.job_energy_j for one in parts])
    fields = RunFields(names, _repetitions(kinds, kind), wall_s, energy_j)
    runs = RunColumns(kinds, kind, fields)
    notes = tuple(chain.from_iterable(one.notes for one in parts))
    study = undeclared(sheet_of(tables[0].path)[0].stem, runs, Warmup(steps=0), notes)
    return msgspec.structs.replace(study, scaling=scaling), _records(parts, names)


def _of_table(table: ResultTable, before: str) -> _TableRuns:
    meanings = columns(table)
    cells = _cells(table, meanings)
    rows = len(table.lines)
    measures = with_rate(_measures(meanings, cells))
    results = [values for name, values in measures.values.items() if name in RESULT_COLUMNS]
    has_result = np.any([~np.isnan(values) for values in results], axis=0)
    kinds = row_kinds(table, meanings, cells, has_result)
    gpus = np.array([_gpus(run) for run in kinds.runs], dtype=np.float64)[kinds.kind]
    texts = {meanings[place].name: column for place, column in cells.texts.items()}
    names = texts.pop("run", None)
    return _TableRuns(
        table,
        kinds,
        run_names(table, names, before, _unused(table, meanings)),
        durations(meanings, cells, rows),
        energies(table, meanings, cells),
        records_of(measures, gpus),
        RowContents(
            table, *measures, [run.sizes for run in kinds.runs], kinds.kind, texts, names,
            _unused(table, meanings),
        ),
        tuple(table_notes(table, meanings, _distinct(cells), measures.values)),
    )  # fmt: skip


def _starts(lengths: Sequence[int]) -> list[int]:
    return [0, *np.cumsum(lengths).tolist()][: len(lengths)]


def _cells(table: ResultTable, meanings: Sequence[TableColumn]) -> Cells:
    """Return the columns that are used; each number is checked.

    Raises:
        LogParseError: a cell is invalid; of several, that of the first row is named.
    """
    kinds = {place: column.kind for place, column in enumerate(meanings)}
    numbers = [
        place
        for place, kind in kinds.items()
        if kind in ("size", "measure") or meanings[place].name in _NUMBERS
    ]
    texts = [p for p, kind in kinds.items() if kind in ("axis", "condition", "run")]
    cells = read_cells(table, numbers, [place for place in texts if place not in numbers])
    wrong = [found for place in numbers for found in _wrong(meanings, cells, place)]
    if wrong:
        row, place = min(wrong)
        raise _bad_cell(table, row, meanings[place], table.row(row)[place])
    return cells


def _wrong(meanings: Sequence[TableColumn], cells: Cells, place: int) -> Iterator[tuple[int, int]]:
    """Yield the first row of a column with a cell that is refused, and its place."""
    least = {at: least for at, _, least in count_columns(meanings)}
    found = cells.numbers[place]
    bad = refused_counts(found, least[place]) if place in least else refused(meanings[place], found)
    if bad.any():
        yield int(bad.argmax()), place


def _bad_cell(table: ResultTable, row: int, column: TableColumn, text: str) -> LogParseError:
    least = {found.name: least for _, found, least in count_columns([column])}
    try:
        whole(text, least[column.name]) if least else value_of(column, text)
    except ValueError as wrong:
        why = str(wrong)
    return LogParseError(f"{table.where(row)}: {column.name}: {why}", "correct this cell")


def _measures(meanings: Sequence[TableColumn], cells: Cells) -> Measures:
    written = {
        column.name: cells.numbers[place]
        for place, column in enumerate(meanings)
        if column.kind == "measure"
    }
    factors = {column.name: column.factor for column in meanings}
    return Measures({name: own * factors[name] for name, own in written.items()}, written)


def _gpus(run: ExpectedRun) -> int:
    return run.sizes.get("nodes", 0) * run.sizes.get("gpus_per_node", 0)


def _unused(table: ResultTable, meanings: Sequence[TableColumn]) -> Callable[[], dict[str, Texts]]:
    places = {p: c.name for p, c in enumerate(meanings) if c.kind == "unused" and c.name}
    return lambda: {
        places[place]: own for place, own in read_cells(table, (), places).texts.items()
    }


def _distinct(cells: Cells) -> dict[int, int]:
    return {place: len(column.names) for place, column in cells.texts.items()}


def _repetitions(kinds: Sequence[ExpectedRun], kind: Ints) -> Ints:
    """Number the runs of one size with the same axes and conditions, in order."""
    keys = [repr((sorted(run.sizes.items()), run.axes, run.conditions)) for run in kinds]
    point = pd.factorize(np.array(keys, dtype=object))[0][kind]
    # Numbers of two bytes are sorted without comparisons.
    narrow = point.astype(np.uint16) if len(keys) < 2**16 else point
    order = np.argsort(narrow, kind="stable")
    begun = np.diff(point[order], prepend=-1) != 0
    first = np.flatnonzero(begun)
    found = np.empty(len(point), dtype=np.int64)
    found[order] = np.arange(1, len(point) + 1) - first[np.cumsum(begun) - 1]
    return found


def _line_numbers(lines: Sequence[int]) -> Ints:
    if isinstance(lines, range):
        return np.arange(lines.start, lines.stop, lines.step)
    return np.asarray(lines, dtype=np.int64)


def _records(tables: Sequence[_TableRuns], names: Sequence[str]) -> TableRecords:
    """Return the measurements of all tables, in the order of their rows."""
    metrics = list(dict.fromkeys(metric for one in tables for metric in one.records.metrics))
    parts = [one.records for one in tables]
    first = _starts([len(one.table.lines) for one in tables])
    number = [np.array([metrics.index(m) for m in one.metrics], dtype=np.int64) for one in parts]
    lines = [_line_numbers(one.table.lines) for one in tables]
    return TableRecords(
        runs=names,
        sources=[str(one.table.path) for one in tables],
        metrics=metrics,
        scopes=SCOPES,
        run=np.concatenate([one.row + n for one, n in zip(parts, first, strict=True)]),
        source=np.repeat(np.arange(len(tables)), [len(one.row) for one in parts]),
        metric=np.concatenate([n[one.metric] for one, n in zip(parts, number, strict=True)]),
        scope=np.concatenate([one.scope for one in parts]),
        line=np.concatenate([own[one.row] for one, own in zip(parts, lines, strict=True)]),
        value=np.concatenate([one.value for one in parts]),
    )
