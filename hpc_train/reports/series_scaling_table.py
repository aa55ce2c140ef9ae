"""Plain rows -> the scaling of each of many series, as a table instead of a paragraph for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter

from hpc_train.model.metrics import BASES, BASIS_COLUMNS
from hpc_train.model.report import Cell, Column, ReportTable
from hpc_train.model.study import Gates
from hpc_train.reports.plain_rows import Row
from hpc_train.reports.point_and_series_names import (
    by_series,
    has_own_baselines,
    series_heading,
    short_series,
    sizes,
    speedup_word,
)
from hpc_train.reports.recommended_sizes import (
    last_efficient,
    last_useful,
    least_doubling,
    least_efficiency,
)
from hpc_train.reports.value_format import ABSENT, fixed, level_word, significant, with_limits

TITLE = "Scaling of each series"
# A summary has a sentence for each of so many series.
MOST_SENTENCES = 3
# A table of more series is as long as the table of points.
MOST_ROWS = 100


class _Series:
    """A series with results: its baseline, and its point with the largest speedup."""

    def __init__(self, name: str, own: Sequence[Row]) -> None:
        self.name, self.own = name, own
        self.base = next((row for row in own if row["is_baseline"]), None)
        known = [row for row in own if row["speedup"] is not None and not row["is_baseline"]]
        self.best = max(known, key=lambda row: float(row["speedup"]), default=None)


def is_tabled(points: Sequence[Row]) -> bool:
    """Whether a table says how each series scales: several with baselines of their own."""
    return has_own_baselines(points) and MOST_SENTENCES < len(_scaled(points)) <= MOST_ROWS


def series_sentence(points: Sequence[Row]) -> str:
    """Return the largest and the smallest of the best speedups of all series, and the table."""
    axis, named = series_heading(points), sizes(points)
    best = [(one, one.best) for one in _scaled(points) if one.best]
    best.sort(key=lambda pair: float(pair[1]["speedup"]))
    least, most = (
        f"{fixed(row['speedup'], 2)} ({short_series(one.name, axis)}, {named(row)})"
        for one, row in (best[0], best[-1])
    )
    return (
        f"Largest {speedup_word(points)} of each of {len(best)} series, relative to its own "
        f"smallest size: {least} to {most}; table {TITLE}."
    )


def series_table(points: Sequence[Row], gates: Gates) -> ReportTable:
    """Return a row for each series: baseline, largest speedup, and its useful sizes."""
    columns = list(_columns(points, gates))
    rows = tuple(
        tuple(Cell(text=(text := show(one)), value=text) for _, show in columns)
        for one in _scaled(points)
    )
    return ReportTable(title=TITLE, columns=tuple(column for column, _ in columns), rows=rows)


def _scaled(points: Sequence[Row]) -> list[_Series]:
    every = by_series(points, itemgetter("series")).items()
    return [one for one in (_Series(str(name), own) for name, own in every) if one.best]


def _columns(
    points: Sequence[Row], gates: Gates
) -> Iterator[tuple[Column, Callable[[_Series], str]]]:
    axis, named = series_heading(points), sizes(points)
    level = level_word(float(points[0]["confidence"]))

    def size(row: Row | None) -> str:
        return named(row) if row else ABSENT

    def last(one: _Series, key: str, row: Row | None) -> str:
        known = any(each[key] is not None for each in one.own if each is not one.base)
        return "none" if known and row is None else size(row)

    yield (
        Column(key="series", heading=axis or "series", align="left"),
        lambda one: short_series(one.name, axis),
    )
    yield Column(key="baseline", heading="baseline", drop=3), lambda one: size(one.base)
    yield Column(key="result", heading="its result", drop=2), lambda one: _result(one.base)
    yield (
        Column(key="speedup", heading=f"largest own-series\nspeedup [{level}]"),
        lambda one: with_limits(one.best, "speedup", 2) if one.best else ABSENT,
    )
    yield Column(key="at", heading="at"), lambda one: size(one.best)
    yield (
        Column(key="efficient", heading=f"efficiency\n≥ {least_efficiency(gates)}\nup to"),
        lambda one: last(one, "efficiency", last_efficient(one.own, gates)),
    )
    yield (
        Column(key="doubled", heading=f"doublings of\n{least_doubling(gates)} up to", drop=1),
        lambda one: last(one, "doubling", last_useful(one.own, gates)),
    )


def _result(row: Row | None) -> str:
    if row is None:
        return ABSENT
    number = significant(row[BASIS_COLUMNS[row["basis"]]])
    return f"{number} {BASES[row['basis']].in_sentence}"
