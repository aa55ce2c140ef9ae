"""Plain rows -> the tables of a scaling report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from hpc_train.model.report import Cell, Column, ReportTable
from hpc_train.reports.numbers import ABSENT, fixed, significant, whole, with_limits
from hpc_train.reports.rows import nested
from hpc_train.reports.words import one_size, series_heading, short_series

Row = Mapping[str, Any]
OK = "COMPLETED"
SIZES = ("series", "nodes", "gpus_per_node", "tasks_per_node", "ranks", "global_batch")
RATIOS = ("speedup", "ideal", "efficiency")
# What leaves the table first where it is wider than a terminal, unless speedup is made of it.
LESS = ("time_to_train_s", "epoch_time_s", "step_time_s")
BASES = {"epoch time": "epoch_time_s", "time to train": "time_to_train_s"}
ROOM = 100


class Shown(NamedTuple):
    """A column of the points table; one whose rows agree moves into the summary if `droppable`."""

    column: Column
    text: Callable[[Row], str]
    droppable: bool = True


def points_table(points: Sequence[Row], confidence: float) -> ReportTable:
    """Return the table of points, without the columns that say the same in each row.

    Where it is wider than 100 characters, columns that speedup is not made of leave it.
    """
    shown = [column for column in _columns(points, confidence) if _worth(column, points)]
    needed = {BASES.get(row["basis"]) for row in points}
    for key in LESS:
        if _width(shown, points) > ROOM and key not in needed:
            shown = [column for column in shown if column.column.key != key]
    return ReportTable(
        title="Points",
        columns=tuple(column.column for column in shown),
        rows=tuple(
            tuple(Cell(text=c.text(row), value=row.get(c.column.key)) for c in shown)
            for row in points
        ),
        key="rows",
        records=tuple(nested(row) for row in points),
    )


def runs_table(runs: Sequence[Row]) -> ReportTable:
    """Return the table of the runs that are not ok; `records` holds every run."""
    names = ("run_id", "state", "problem")
    return ReportTable(
        title="Runs without a result",
        columns=tuple(Column(key=name, heading=name, align="left") for name in names),
        rows=tuple(
            tuple(Cell(text=str(run[name] or ABSENT), value=run[name]) for name in names)
            for run in runs
            if run["state"] != OK
        ),
        key="runs",
        records=tuple(dict(run) for run in runs),
    )


def constants(points: Sequence[Row]) -> str:
    """Return `nodes=1, tasks_per_node=4` for the sizes that do not vary, to be said once."""
    names = ("nodes", "gpus_per_node", "tasks_per_node", "cpus_per_task", "global_batch")
    same = {name: {row[name] for row in points} - {None} for name in names}
    return ", ".join(f"{name}={whole(v.pop())}" for name, v in same.items() if len(v) == 1)


def _columns(points: Sequence[Row], confidence: float) -> list[Shown]:
    axis = series_heading(points)
    level = f"[{confidence:.0%}]"
    counts = [
        Shown(Column(key=key, heading=heading), _count(key))
        for key, heading in (
            ("nodes", "nodes"),
            ("gpus_per_node", "gpus/\nnode"),
            ("tasks_per_node", "tasks/\nnode"),
            ("ranks", "ranks"),
            ("global_batch", "batch"),
        )
    ]
    return [
        Shown(
            Column(key="series", heading=axis or "series", align="left"),
            lambda row: short_series(row["series"], axis),
        ),
        *(c for c in counts if c.column.key != "ranks" or not _one_size_varies(points)),
        Shown(
            Column(key="n_ok", heading="ok/n"), lambda r: f"{r['n_ok']}/{r['n_submitted']}", False
        ),
        *_timings(),
        Shown(Column(key="speedup", heading=f"speedup\n{level}"), _limits("speedup", 2, 1)),
        Shown(Column(key="ideal", heading="ideal"), _count("ideal")),
        Shown(
            Column(key="efficiency", heading=f"efficiency\n% {level}"),
            _limits("efficiency", 0, 100),
        ),
        Shown(Column(key="accuracy", heading="accuracy\n% (change)"), _accuracy),
        Shown(Column(key="flags", heading="flags", align="left"), _flags),
    ]


def _timings() -> list[Shown]:
    return [
        Shown(
            Column(key="step_time_s", heading="step\n[ms]"),
            lambda row: significant(
                None if row["step_time_s"] is None else row["step_time_s"] * 1e3
            ),
        ),
        Shown(
            Column(key="samples_per_second", heading="samples/s"),
            lambda row: significant(row["samples_per_second"]),
        ),
        Shown(
            Column(key="tokens_per_second", heading="tokens/s"),
            lambda row: significant(row["tokens_per_second"]),
        ),
        Shown(
            Column(key="epoch_time_s", heading="epoch\n[s]"),
            lambda row: significant(row["epoch_time_s"]),
        ),
        Shown(
            Column(key="time_to_train_s", heading="train\n[s]"),
            lambda row: significant(row["time_to_train_s"]),
        ),
    ]


def _worth(shown: Shown, points: Sequence[Row]) -> bool:
    """Whether a column says more than one thing, or something that no other place says."""
    if not shown.droppable:
        return True
    if shown.column.key in RATIOS:
        compared = any(row["speedup"] is not None and not row["is_baseline"] for row in points)
        return compared or not one_size(points)
    values = {shown.text(row) for row in points}
    if shown.column.key == "ranks":
        return len(values) > 1
    values.discard(ABSENT)
    return len(values) > 1 if shown.column.key in SIZES else bool(values)


def _width(shown: Sequence[Shown], points: Sequence[Row]) -> int:
    """Return the width of the table as text, one space between its columns."""
    texts = [[*c.column.heading.split("\n"), *(c.text(row) for row in points)] for c in shown]
    return sum(max(map(len, column)) for column in texts) + len(shown) - 1


def _one_size_varies(points: Sequence[Row]) -> bool:
    names = ("nodes", "gpus_per_node", "tasks_per_node")
    varying = [name for name in names if len({row[name] for row in points}) > 1]
    return len(varying) > 0


def _count(key: str) -> Callable[[Row], str]:
    return lambda row: whole(row[key])


def _limits(key: str, decimals: int, factor: float) -> Callable[[Row], str]:
    return lambda row: with_limits(row, key, decimals, factor)


def _accuracy(row: Row) -> str:
    if row["accuracy"] is None:
        return ABSENT
    change = row["accuracy_change_pp"]
    shown = fixed(row["accuracy"], 1, 100)
    return shown if change is None or row["is_baseline"] else f"{shown} ({change:+.1f})"


def _flags(row: Row) -> str:
    codes = dict.fromkeys(flag.partition(":")[0] for flag in row["flags"])
    return ", ".join([*codes, *([row["not_ok"]] if row["not_ok"] else [])]) or ABSENT
