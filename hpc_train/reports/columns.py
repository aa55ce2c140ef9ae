"""Columns of a table of points: heading, and format of a row's value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hpc_train.model.report import Column
from hpc_train.reports.numbers import ABSENT, fixed, significant, whole, with_limits
from hpc_train.reports.words import series_heading, short_series

Row = Mapping[str, Any]
Text = Callable[[Row], str]


class Shown(NamedTuple):
    """A column of the points table; if `droppable`, a constant column moves to the summary."""

    column: Column
    text: Text
    droppable: bool = True


def compact_columns(points: Sequence[Row], confidence: float) -> list[Shown]:
    """Return the columns that a reader needs, in order."""
    level = f"[{confidence:.0%}]"
    return [
        _series(points),
        *_sizes(),
        _runs(),
        _milliseconds("step_time_s", "step\n[ms]"),
        _significant("samples_per_second", "samples/s"),
        _significant("tokens_per_second", "tokens/s"),
        _significant("epoch_time_s", "epoch\n[s]"),
        _significant("time_to_train_s", "train\n[s]"),
        *_ratios(level),
        _limits("time_to_train_speedup", f"speedup of\ntraining {level}", 2),
        Shown(Column(key="accuracy", heading="accuracy\n% (change)"), _accuracy),
        _words("transport", "transport"),
        Shown(Column(key="flags", heading="flags", align="left"), _flags),
    ]


def wide_columns(points: Sequence[Row], confidence: float) -> list[Shown]:
    """Return every column, in order of importance."""
    level = f"[{confidence:.0%}]"
    return [
        _series(points),
        _words("regime", "regime"),
        *_sizes(),
        Shown(Column(key="micro_batch", heading="batch/\nrank"), _per_rank),
        _runs(),
        _count("warmup_steps", "warm-up\nsteps"),
        _count("steps", "steps"),
        _milliseconds("step_time_s", f"step [ms]\n{level}", "step_time_s"),
        *(_milliseconds(f"step_p{q}_s", f"p{q}\n[ms]") for q in ("05", "25", "75", "95")),
        _limits("samples_per_second", f"samples/s\n{level}", None),
        _significant("samples_per_second_per_rank", "samples/s\na rank"),
        _significant("tokens_per_second", "tokens/s"),
        _significant("epoch_time_s", "epoch\n[s]"),
        *_ratios(level),
        _limits("doubling", f"doubling\n{level}", 2),
        _limits("karp_flatt", f"Karp-Flatt\n{level}", 4),
        *_training(level),
        *_effort(),
        _words("transport", "transport"),
        Shown(Column(key="flags", heading="flags", align="left"), _flags),
    ]


def _training(level: str) -> tuple[Shown, ...]:
    return (
        _significant("time_to_train_s", "train\n[s]"),
        _limits("time_to_train_speedup", f"speedup of\ntraining {level}", 2),
        _limits("time_to_train_efficiency", f"efficiency of\ntraining % {level}", 0, 100),
        Shown(Column(key="accuracy", heading="accuracy\n% (change)"), _accuracy),
        _significant("learning_rate", "learning\nrate"),
        _significant("optimiser_steps", "optimiser\nsteps"),
        _significant("samples_seen", "samples\nseen"),
    )


def _effort() -> tuple[Shown, ...]:
    return (
        _percent("cv", "cv\n%"),
        _significant("first_step_time_s", "first step\n[s]"),
        _significant("wall_s", "wall\n[s]"),
        _significant("gpu_hours_per_million", "GPU-h per\n1e6 samples"),
        _significant("node_hours_per_million", "node-h per\n1e6 samples"),
        _significant("gpu_hours_spent", "GPU-h\nspent"),
        _significant("cost_per_million", "cost per\n1e6 samples"),
        _percent("mfu", "MFU\n%"),
        _significant("memory_gib", "memory\n[GiB]"),
        _percent("communication_share", "communi-\ncation %"),
        _percent("data_share", "data\n%"),
    )


def _series(points: Sequence[Row]) -> Shown:
    axis = series_heading(points)
    column = Column(key="series", heading=axis or "series", align="left")
    return Shown(column, lambda row: short_series(row["series"], axis))


def _sizes() -> Iterator[Shown]:
    for key, heading in (
        ("nodes", "nodes"),
        ("gpus_per_node", "gpus/\nnode"),
        ("tasks_per_node", "tasks/\nnode"),
        ("gpus", "gpus"),
        ("ranks", "ranks"),
        ("global_batch", "batch"),
    ):
        yield _count(key, heading)


def _runs() -> Shown:
    return Shown(
        Column(key="n_ok", heading="ok/n"), lambda row: f"{row['n_ok']}/{row['n_submitted']}", False
    )


def _ratios(level: str) -> tuple[Shown, ...]:
    return (
        _limits("speedup", f"speedup\n{level}", 2),
        _count("ideal", "ideal"),
        _limits("efficiency", f"efficiency\n% {level}", 0, 100),
    )


def _count(key: str, heading: str) -> Shown:
    return Shown(Column(key=key, heading=heading), lambda row: whole(row.get(key)))


def _significant(key: str, heading: str) -> Shown:
    return Shown(Column(key=key, heading=heading), lambda row: significant(row.get(key)))


def _percent(key: str, heading: str) -> Shown:
    return Shown(Column(key=key, heading=heading), lambda row: fixed(row.get(key), 1, 100))


def _words(key: str, heading: str) -> Shown:
    column = Column(key=key, heading=heading, align="left")
    return Shown(column, lambda row: row.get(key) or ABSENT)


def _limits(key: str, heading: str, decimals: int | None, factor: float = 1) -> Shown:
    return Shown(
        Column(key=key, heading=heading), lambda row: with_limits(row, key, decimals, factor)
    )


def _milliseconds(key: str, heading: str, limits: str = "") -> Shown:
    column = Column(key=key, heading=heading)
    if limits:
        return Shown(column, lambda row: with_limits(row, limits, None, 1e3))
    return Shown(column, lambda row: significant(_times(row.get(key), 1e3)))


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


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
    codes = dict.fromkeys(flag.partition(":")[0] for flag in row["flags"])
    return ", ".join([*codes, *([row["not_ok"]] if row["not_ok"] else [])]) or ABSENT
