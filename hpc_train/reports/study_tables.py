"""Columns of a table of points: heading, and format of a row's value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from hpc_train.base.metrics import BASES, BASIS_COLUMNS, Metric, TextColumn, in_text_order
from hpc_train.jobs.study import ALONE
from hpc_train.reports.point_and_series_names import (
    counted,
    has_own_baselines,
    names,
    one_size,
    series_heading,
    short_series,
    size_unit,
)
from hpc_train.reports.report import Cell, Column, Report, ReportTable
from hpc_train.reports.value_format import (
    ABSENT,
    Row,
    fixed,
    for_programs,
    level_word,
    nested,
    plain_rows,
    significant,
    whole,
    with_limits,
)
from hpc_train.scaling.report_options import Target

TextOfRow = Callable[[Row], str]
SIZE_COLUMNS = {
    "nodes": "nodes",
    "gpus_per_node": "gpus/\nnode",
    "tasks_per_node": "tasks/\nnode",
    "gpus": "gpus",
    "ranks": "ranks",
}


class PointColumn(NamedTuple):
    """A column of the points table; if `droppable`, a constant column moves to the summary."""

    column: Column
    text: TextOfRow
    droppable: bool = True


class WrittenColumn(NamedTuple):
    """A column of the points table with the text of each cell."""

    column: Column
    texts: Sequence[str]
    droppable: bool


def compact_columns(points: Sequence[Row], confidence: float) -> list[WrittenColumn]:
    """Return the columns that a reader needs, in order."""
    words = _HeadingWords(points, confidence)
    batch, *others = (
        _of_metric(metric, metric.text, metric.text.heading, words)
        for metric in in_text_order()
        if metric.text and metric.text.compact
    )
    return _written([_series(points), *_sizes(), batch, _runs(), *others, *_remarks()], points)


def table_width(shown: Sequence[WrittenColumn]) -> int:
    """Return the width of a table as text, with one space between its columns."""
    texts = ((*one.column.heading.split("\n"), *one.texts) for one in shown)
    return sum(max(map(len, column)) for column in texts) + len(shown) - 1


def wide_columns(points: Sequence[Row], confidence: float) -> list[WrittenColumn]:
    """Return every column, in order of importance."""
    words = _HeadingWords(points, confidence)
    batch, *others = (
        _of_metric(metric, metric.text, metric.text.wide_heading or metric.text.heading, words)
        for metric in in_text_order()
        if metric.text
    )
    per_rank = PointColumn(Column(key="micro_batch", heading="batch/\nrank"), _per_rank)
    regime = _words("regime", "regime")
    every = [_series(points), regime, *_sizes(), batch, per_rank, _runs(), *others, *_remarks()]
    return _written(every, points)


def _written(columns: Sequence[PointColumn], points: Sequence[Row]) -> list[WrittenColumn]:
    return [
        WrittenColumn(one.column, [one.text(row) for row in points], one.droppable)
        for one in columns
    ]


class _HeadingWords:
    """Words in headings: the level, and whether each series has its own baseline."""

    def __init__(self, points: Sequence[Row], confidence: float) -> None:
        self._level = f"[{level_word(confidence)}]"
        self._own = "own-series\n" if has_own_baselines(points) else ""
        self._items = " or ".join(dict.fromkeys(BASES[row["basis"]].counted for row in points))

    def heading(self, text: str) -> str:
        """Return a heading with its words."""
        return text.format(level=self._level, own=self._own, items=self._items)


def _of_metric(metric: Metric, how: TextColumn, heading: str, words: _HeadingWords) -> PointColumn:
    column = Column(key=metric.key, heading=words.heading(heading))
    if metric.key == "accuracy":
        return PointColumn(column, _accuracy)
    if how.whole:
        return PointColumn(column, lambda row: whole(row.get(metric.key)))
    limits = "{level}" in heading
    return PointColumn(
        column,
        lambda row: with_limits(row, metric.key, how.decimals, how.factor, limits=limits),
    )


def _series(points: Sequence[Row]) -> PointColumn:
    axis = series_heading(points)
    column = Column(key="series", heading=axis or "series", align="left")
    return PointColumn(column, lambda row: short_series(row["series"], axis))


def _sizes() -> Iterator[PointColumn]:
    for key, heading in SIZE_COLUMNS.items():
        yield PointColumn(Column(key=key, heading=heading), partial(_size, key))


def _size(key: str, row: Row) -> str:
    return whole(row.get(key))


def _runs() -> PointColumn:
    return PointColumn(
        Column(key="n_ok", heading="runs\nok"),
        lambda row: f"{row['n_ok']}/{row['n_submitted']}",
        False,
    )


def _remarks() -> tuple[PointColumn, ...]:
    return (
        _words("transport", "transport"),
        PointColumn(Column(key="flags", heading="flags", align="left"), _flags),
    )


def _words(key: str, heading: str) -> PointColumn:
    column = Column(key=key, heading=heading, align="left")
    return PointColumn(column, lambda row: row.get(key) or ABSENT)


def _per_rank(row: Row) -> str:
    known = row["global_batch"] is not None and row["ranks"]
    return whole(row["global_batch"] / row["ranks"]) if known else ABSENT


def _accuracy(row: Row) -> str:
    if row["accuracy"] is None:
        return ABSENT
    change = row["accuracy_change_pp"]
    shown = fixed(row["accuracy"], 1, 100)
    if change is None or row["is_baseline"]:
        return shown
    # No -0.0.
    return f"{shown} ({round(change, 1) + 0.0:+.1f})"


def _flags(row: Row) -> str:
    codes = dict.fromkeys(flag.code.value for flag in row["flags"])
    return ", ".join([*codes, *([row["not_ok"]] if row["not_ok"] else [])]) or ABSENT


if TYPE_CHECKING:
    import pandas as pd


OK = "COMPLETED"
SIZES = (
    "series", "nodes", "gpus_per_node", "tasks_per_node", "ranks", "global_batch",
    "tokens_per_step", "gpus",
)  # fmt: skip
SIZE_WORDS = {
    "nodes": ("node", ""),
    "gpus_per_node": ("GPU", " per node"),
    "tasks_per_node": ("task", " per node"),
    "cpus_per_task": ("CPU", " per task"),
    "global_batch": ("sample", " in a global batch"),
    "tokens_per_step": ("token", " in a step"),
}
RATIOS = ("speedup", "ideal", "efficiency")
# Columns that are dropped first if the table is too wide, unless speedup is computed from them.
LESS = (
    "nodes", "time_to_train_s", "epoch_time_s", "step_time_s", "ideal",
    "tokens_per_second", "common_speedup", "samples_per_second", "accuracy",
)  # fmt: skip
ROOM = 100
# Columns that may be empty.
COMPLETE_WITHOUT = frozenset({"flags", "transport", "series"})
COMPARED = frozenset({
    "speedup", "common_speedup", "ideal", "efficiency", "doubling", "karp_flatt",
})  # fmt: skip
NAMED = 8


def points_table(
    points: Sequence[Row], confidence: float, *, wide: bool = False, room: int = ROOM
) -> ReportTable:
    """Return the table of points, without constant columns.

    If it is wider than `room` characters, columns that speedup is not computed from are dropped; a
    `wide` table keeps every column that has a value.
    """
    every = wide_columns(points, confidence) if wide else compact_columns(points, confidence)
    shown = [column for column in every if _is_needed(column, points, wide=wide)]
    if not wide:
        shown = _fitting(_with_drop(shown, points), room)
    return ReportTable(
        title="Points",
        columns=tuple(one.column for one in shown),
        rows=tuple(zip(*(_cells(one, points) for one in shown), strict=True)),
        key="rows",
        records=tuple(map(nested, points)),
    )


def _cells(shown: WrittenColumn, points: Sequence[Row]) -> list[Cell]:
    key = shown.column.key
    return [
        Cell(text=text, value=row.get(key)) for text, row in zip(shown.texts, points, strict=True)
    ]


def before_runs(report: Report, added: Sequence[ReportTable]) -> tuple[ReportTable, ...]:
    """Return the tables of a report with others before that of the runs."""
    keys = [table.key for table in report.tables]
    place = keys.index("runs") if "runs" in keys else len(keys)
    return (*report.tables[:place], *added, *report.tables[place:])


def runs_table(runs: pd.DataFrame) -> ReportTable:
    """Return the table of the runs that are not ok; `records` holds every run."""
    names = ["run_id", "state", "problem"]
    lacking = plain_rows(runs.loc[runs["state"] != OK, names])
    return ReportTable(
        title="Runs without a result",
        columns=tuple(
            Column(
                key=name, heading=name.removesuffix("_id"), align="left", prose=name == "problem"
            )
            for name in names
        ),
        rows=tuple(
            tuple(Cell(text=str(run[name] or ABSENT), value=run[name]) for name in names)
            for run in lacking
        ),
        key="runs",
        records=tuple(map(for_programs, plain_rows(runs))),
    )


def constants(points: Sequence[Row]) -> str:
    """Return `1 node, 4 tasks per node` for the sizes that are constant."""
    said = []
    for name, (word, after) in SIZE_WORDS.items():
        # A value that a point with a result did not record may differ.
        values = {row[name] for row in points if row["n_ok"] or row[name] is not None}
        if len(values) == 1 and (value := values.pop()) is not None:
            said.append(f"{counted(value, word)}{after}" if value else f"no {word}s")
    return ", ".join(said)


def _fitting(shown: list[WrittenColumn], room: int) -> list[WrittenColumn]:
    """Return the columns that fit into `room` characters."""
    for one in sorted(shown, key=lambda one: one.column.drop):
        if one.column.drop and table_width(shown) > room:
            shown = [other for other in shown if other is not one]
    return shown


def _with_drop(shown: Sequence[WrittenColumn], points: Sequence[Row]) -> list[WrittenColumn]:
    """Return the columns, with the order in which they are left out where the table is too wide."""
    times = {row["basis"] for row in points if not BASES[row["basis"]].is_rate}
    needed = {BASIS_COLUMNS[basis] for basis in times}
    if not follow_from_unit(points):
        needed.add("nodes")
    order = {key: place for place, key in enumerate(LESS, start=1) if key not in needed}
    return [
        one._replace(column=replace(one.column, drop=order.get(one.column.key, 0))) for one in shown
    ]


def _is_needed(shown: WrittenColumn, points: Sequence[Row], *, wide: bool) -> bool:
    """Whether a column is not constant, or has a value that is shown nowhere else."""
    key = shown.column.key
    if not shown.droppable:
        return True
    if key in RATIOS:
        compared = any(row["speedup"] is not None and not row["is_baseline"] for row in points)
        return compared or not one_size(points)
    if key == "common_speedup" and not wide:
        return any(row[key] is not None for row in points) and has_own_baselines(points)
    values = set(shown.texts)
    if key == "ranks" or (key in ("nodes", "gpus") and not wide):
        return len(values) > 1 and (wide or _is_needed_size(key, points))
    known = values - {ABSENT}
    if key not in SIZES or wide:
        return bool(known)
    silent = ABSENT in values and any(
        row["n_ok"] and text == ABSENT for row, text in zip(points, shown.texts, strict=True)
    )
    new = not key.endswith("_per_node") or _is_needed_size(key, points)
    return new and (len(known) > 1 or bool(known and silent))


def _is_needed_size(key: str, points: Sequence[Row]) -> bool:
    """Whether it is the unit of the report, or not the same number as that in each row."""
    unit = size_unit(points).key
    new = any(row[key] != row[unit] for row in points)
    if key == "ranks":
        names = ("nodes", "gpus_per_node", "tasks_per_node")
        new = new and not any(len({row[name] for row in points}) > 1 for name in names)
    return key == unit or (new and key != "gpus")


def follow_from_unit(points: Sequence[Row]) -> bool:
    """Whether the nodes follow from the unit: `constants` says how many there are on a node."""
    unit = size_unit(points).key
    ratios = {row[unit] / row["nodes"] for row in points if row["nodes"] and row[unit]}
    return len(ratios) == 1 and all(row["nodes"] and row[unit] for row in points)


def absent_notes(table: ReportTable, points: Sequence[Row]) -> Iterator[str]:
    """Yield a note per reason with the rows that have `--`."""
    if not any(cell.text == ABSENT for row in table.rows for cell in row):
        return
    reasons: dict[str, list[str]] = {}
    name = names(points)
    for row, cells in zip(points, table.rows, strict=True):
        empty = {
            column.key: column.heading.replace("\n", " ").partition(" [")[0]
            for column, cell in zip(table.columns, cells, strict=True)
            if cell.text == ABSENT and column.key not in COMPLETE_WITHOUT
        }
        for reason in _reasons(row, empty):
            reasons.setdefault(reason, []).append(name(row))
    for reason, rows in reasons.items():
        more = f" and {len(rows) - NAMED} more" if len(rows) > NAMED else ""
        where = "every point" if len(rows) == len(points) > 1 else ", ".join(rows[:NAMED]) + more
        yield f"{ABSENT}: {where}: {reason}."


def _reasons(row: Row, empty: Mapping[str, str]) -> Iterator[str]:
    if not empty:
        return
    if not row["n_ok"]:
        yield f"no run with a result ({row['not_ok']})"
        return
    if COMPARED & empty.keys() and row["note"]:
        beside = row["common_speedup"] is not None  # the table has that to the common baseline
        yield str(row["note"]).replace("no sp", "no own-series sp" if beside else "no sp", 1)
    if "common_speedup" in empty and not row["note"]:
        yield "no other series did the same work, so that there is no common baseline"
    later = {"doubling", "karp_flatt"} & empty.keys()
    if later and not row["note"] and not row["is_baseline"]:
        yield "doubling needs the point of half the size, Karp-Flatt a point above the baseline"
    other = [name for key, name in empty.items() if key not in COMPARED]
    if other:
        yield f"not recorded: {', '.join(other)}"


COLUMNS = (
    Column(key="series", heading="series", align="left"),
    Column(key="nodes", heading="nodes", drop=2),
    Column(key="ranks", heading="ranks"),
    Column(key="global_batch", heading="batch", drop=3),
    Column(key="n_reached", heading="reached\n/n"),
    Column(key="samples_to_target", heading="samples to\ntarget", drop=4),
    Column(key="time_to_target_s", heading="time to\ntarget [s]\nwith\nstart-up"),
    Column(
        key="time_to_target_without_startup_s",
        heading="time to\ntarget [s]\nwithout\nstart-up",
        drop=2,
    ),
    Column(key="startup_s", heading="start-up\n[s]", drop=1),
    Column(key="statistical_efficiency", heading="statistical\nefficiency [%] [95 %]"),
)
NOTE = (
    "Time to {target}: until the first evaluation that reaches it; validation values are "
    "preferred. Evaluations without a step number are assumed to be evenly spaced. A run that "
    "did not reach the target has no time, which is not extrapolated. Without start-up, time = "
    "samples/throughput; with start-up, it includes what the warm-up (initialisation, compilation, "
    "first steps) took beyond its usual steps, and is -- where that was not recorded. Both include "
    "evaluations if the throughput does. A run without a throughput has its share of the time to "
    "train, with start-up. With three or four runs the time is their mean; with more, the mean "
    "without the best and the worst one, and one run may fail (MLPerf). "
    "Statistical efficiency = samples to target at the baseline / at the point."
)


def with_target(report: Report, rows: Sequence[dict[str, Any]], target: Target) -> Report:
    """Return the report with a table of samples and time to the target of each point."""
    skip = 1 if {row["series"] for row in rows} <= {ALONE} else 0
    table = ReportTable(
        title=f"Time to {target}",
        columns=COLUMNS[skip:],
        rows=tuple(tuple(Cell(text=text) for text in _texts(row)[skip:]) for row in rows),
        key="target",
        records=tuple(rows),
    )
    notes = (*report.notes, NOTE.format(target=target), *_lacking(rows, target))
    asked = {"target": str(target)}
    return msgspec.structs.replace(
        report,
        tables=before_runs(report, (table,)),
        notes=notes,
        conditions={**report.conditions, **asked},
    )


def _texts(row: Row) -> tuple[str, ...]:
    state = "" if row["state"] == "reached" else row["state"]
    return (
        row["series"],
        whole(row["nodes"]),
        whole(row["ranks"]),
        whole(row["global_batch"]),
        f"{row['n_reached']}/{row['n_ok']}",
        state or significant(row["samples_to_target"]),
        _time(row, "time_to_target_s") or state or ABSENT,
        _time(row, "time_to_target_without_startup_s") or state or ABSENT,
        significant(row["startup_s"]),
        _ratio(row["statistical_efficiency"]),
    )


def _time(row: Row, key: str) -> str:
    return "" if row[key] is None else significant(row[key])


def _ratio(found: Mapping[str, float | None] | None) -> str:
    if found is None:
        return ABSENT
    value, low, high = (fixed(found[end], 0, 100) for end in ("value", "low", "high"))
    return value if ABSENT in (low, high) else f"{value} [{low}, {high}]"


def _lacking(rows: Sequence[Row], target: Target) -> tuple[str, ...]:
    every = [run for row in rows for run in row["runs"]]
    unknown = [run["run_id"] for run in every if run["state"] == "not measured"]
    if not unknown:
        return ()
    more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
    return (
        f"not measured: {unknown[0]}{more} did not print {target.metric} and the global batch; "
        "print an event with step and global_batch_size (hpctrain help events).",
    )
