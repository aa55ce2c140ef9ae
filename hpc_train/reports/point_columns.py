"""Columns of a table of points: heading, and format of a row's value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from hpc_train.base.metrics import BASES, Metric, TextColumn, in_text_order
from hpc_train.reports.point_and_series_names import has_own_baselines, series_heading, short_series
from hpc_train.reports.report import Column
from hpc_train.reports.value_format import ABSENT, Row, fixed, level_word, whole, with_limits

TextOfRow = Callable[[Row], str]
SIZES = {
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
    for key, heading in SIZES.items():
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
