"""Rows of a series -> marks on a panel: runs, means, intervals, points without a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hpc_train.reports.figures.looks import Look
from hpc_train.reports.figures.sheet import Sheet, explain
from hpc_train.reports.formats.plain import one_line
from hpc_train.reports.words import ALONE, counted, place

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = Mapping[str, Any]
GREY = "0.35"
DOTTED = (0, (1, 2))
GATE = "black"


class Dot(NamedTuple):
    """A mark: position, tooltip, and its row in the data."""

    x: float
    y: float
    title: str
    row: dict[str, Any]


def run_dot(row: Row, x: float, y: float, shown: str) -> Dot:
    """Return the mark of one run; `shown` is its value as text."""
    about = {
        "drawn": "run", "series": row["series"], "ranks": row["ranks"], "run_id": row["run_id"],
        "state": row["state"], "value": y,
    }  # fmt: skip
    return Dot(x, y, one_line(f"{row['run_id']}: {shown}, {row['state']}"), about)


def mean_dot(row: Row, x: float, y: float, shown: str) -> Dot:
    """Return the mark of a point's mean."""
    about = {
        "drawn": "mean", "series": row["series"], "ranks": row["ranks"], "runs": row["n_ok"],
        "value": y,
    }  # fmt: skip
    series = "" if row["series"] == ALONE else f"{row['series']}, "
    title = f"{series}{place(row)}: {shown}, mean of {counted(row['n_ok'], 'run')}"
    return Dot(x, y, one_line(title), about)


def with_limits(dot: Dot, low: float | None, high: float | None) -> Dot:
    """Return the mark with its interval in the data and in the tooltip."""
    if low is None or high is None:
        return dot
    words = f"{dot.title}, interval {low:.4g} to {high:.4g}"
    return dot._replace(title=words, row={**dot.row, "low": low, "high": high})


def draw_runs(sheet: Sheet, axes: Axes, dots: Sequence[Dot], look: Look) -> None:
    """Draw every run as a small mark."""
    if dots:
        size = 0.6 * look.marker_points
        (artist,) = axes.plot(
            *_xy(dots), look.marker, color=look.colour, ms=size, alpha=0.55, mec="none"
        )
        _keep(sheet, artist, dots)


def draw_means(
    sheet: Sheet, axes: Axes, dots: Sequence[Dot], look: Look, gaps: Sequence[int] = ()
) -> None:
    """Draw the means of a series, joined from the smallest size to the largest.

    `gaps` are the sizes without a result: the line is interrupted there.
    """
    if not dots:
        return
    ordered = sorted(dots, key=lambda dot: dot.row["ranks"] or 0)
    for part in _parts(ordered, gaps):
        axes.plot(*_xy(part), color=look.colour, ls=look.dashes, lw=1.4)
    (artist,) = axes.plot(
        *_xy(ordered), look.marker, color=look.colour, ms=look.marker_points, mec="white", mew=0.6
    )
    _keep(sheet, artist, ordered)


def draw_bars(axes: Axes, dots: Sequence[Dot], look: Look) -> list[float]:
    """Draw the intervals of the means; return their ends."""
    known = [dot for dot in dots if "low" in dot.row]
    if not known:
        return []
    low, high = ([float(dot.row[end]) for dot in known] for end in ("low", "high"))
    # By rounding, the value of runs without any spread may be outside of its interval.
    below = [max(0.0, dot.y - one) for dot, one in zip(known, low, strict=True)]
    above = [max(0.0, one - dot.y) for dot, one in zip(known, high, strict=True)]
    axes.errorbar(
        *_xy(known), yerr=[below, above], fmt="none", ecolor=look.colour, elinewidth=1.1,
        capsize=2.5,
    )  # fmt: skip
    return low + high


def _parts(dots: Sequence[Dot], gaps: Sequence[int]) -> list[list[Dot]]:
    parts: list[list[Dot]] = []
    for dot in dots:
        last = parts[-1][-1].row["ranks"] if parts else None
        if last is None or any(last < gap < dot.row["ranks"] for gap in gaps):
            parts.append([])
        parts[-1].append(dot)
    return parts


def nothing(axes: Axes) -> None:
    """Write on a panel that it has no values."""
    axes.text(0.5, 0.5, "nothing to draw", transform=axes.transAxes, ha="center", color=GREY)


def _keep(sheet: Sheet, artist: Any, dots: Sequence[Dot]) -> None:
    explain(sheet, artist, [dot.title for dot in dots])
    quantity = {"quantity": artist.axes.get_ylabel()}
    sheet.rows.extend(quantity | dot.row for dot in dots)


def _xy(dots: Sequence[Dot]) -> tuple[list[float], list[float]]:
    return [dot.x for dot in dots], [dot.y for dot in dots]
