"""Rows of a series -> marks on a panel: runs, means, intervals, and points without a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hpc_train.jobs.study import ALONE
from hpc_train.reports.figures.canvas import Canvas, Series, explain
from hpc_train.reports.figures.plot_data import PlotData, is_flagged, point_of
from hpc_train.reports.figures.series_styles import Style
from hpc_train.reports.point_and_series_names import counted, place
from hpc_train.reports.study_tables import OK
from hpc_train.reports.value_format import Row, one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Transform

GREY = "0.35"
DOTTED = (0, (1, 2))
GATE = FLAGGED = "black"
# Points that the ring around a flagged mark is wider than the mark.
RING = 5.0
Lost = Mapping[tuple[Any, ...], Sequence[Row]]
# Above the axis, as a share of the height.
HEIGHT = 0.04
# Size of the marker of a single run, relative to that of a point.
SMALLER = 0.7
# Of means, so that the pointer finds them and not their intervals.
ABOVE = 3


class Dot(NamedTuple):
    """A mark: position, tooltip, and its row in the data."""

    x: float
    y: float
    title: str
    row: dict[str, Any]


def run_dot(row: Row, y: float, shown: str, x: float | None = None) -> Dot:
    """Return the mark of one run at its size or at `x`; `shown` is its value as text."""
    about = {
        "drawn": "run", "series": row["series"], "size": row["size"], "run_id": row["run_id"],
        "state": row["state"], "value": y,
    }  # fmt: skip
    return Dot(
        row["size"] if x is None else x,
        y,
        one_line(f"{row['run_id']}: {shown}, {row['state']}"),
        about,
    )


def mean_dot(row: Row, y: float, shown: str, x: float | None = None) -> Dot:
    """Return the mark of a point's mean at its size or at `x`."""
    about = {
        "drawn": "mean", "series": row["series"], "size": row["size"], "runs": row["n_ok"],
        "value": y,
    }  # fmt: skip
    if is_flagged(row):
        about["flags"] = ", ".join(dict.fromkeys(flag.code.value for flag in row["flags"]))
    series = "" if row["series"] == ALONE else f"{row['series']}, "
    title = f"{series}{place(row)}: {shown}, mean of {counted(row['n_ok'], 'run')}"
    return Dot(row["size"] if x is None else x, y, one_line(title), about)


def with_limits(dot: Dot, low: float | None, high: float | None) -> Dot:
    """Return the mark with its interval in the data and in the tooltip."""
    if low is None or high is None:
        return dot
    words = f"{dot.title}, interval {low:.4g} to {high:.4g}"
    return dot._replace(title=words, row={**dot.row, "low": low, "high": high})


def draw_runs(canvas: Canvas, axes: Axes, dots: Sequence[Dot], style: Style) -> None:
    """Draw every run as a small mark."""
    if dots:
        size = 0.6 * style.marker_points
        (artist,) = axes.plot(
            *_xy(dots), style.marker, color=style.colour, ms=size, alpha=0.55, mec="none",
            transform=shifted(axes, style.runs), clip_on=False,
        )  # fmt: skip
        _keep(canvas, artist, dots)


def draw_means(
    canvas: Canvas, axes: Axes, dots: Sequence[Dot], style: Style, gaps: Sequence[int] = ()
) -> None:
    """Draw the means of a series, joined from the smallest size to the largest.

    `gaps` are the sizes without a result: the line is interrupted there. Neither lines nor means
    are shifted, so that equal series have equal lines.
    """
    if not dots:
        return
    ordered = sorted(dots, key=lambda dot: dot.row["size"] or 0)
    for part in _parts(ordered, gaps):
        x, y = _xy(part)
        axes.plot(x, y, color=style.colour, ls=style.dashes, lw=1.4)
        canvas.lines.append(Series(axes, style.series, style.colour, x, y))
    draw_marks(canvas, axes, ordered, style)


def draw_marks(
    canvas: Canvas, axes: Axes, dots: Sequence[Dot], style: Style, shift: float = 0.0
) -> None:
    """Draw the marks of means or medians, shifted by points of the page."""
    if not dots:
        return
    (artist,) = axes.plot(
        *_xy(dots), style.marker, color=style.colour, ms=style.marker_points, mec="white",
        mew=0.6, transform=shifted(axes, shift), zorder=ABOVE, clip_on=False,
    )  # fmt: skip
    _keep(canvas, artist, dots)
    flagged = [dot for dot in dots if "flags" in dot.row]
    if flagged:
        axes.plot(
            *_xy(flagged), "o", mfc="none", mec=FLAGGED, mew=1.2, ms=style.marker_points + RING,
            transform=shifted(axes, shift), zorder=ABOVE, clip_on=False,
        )  # fmt: skip


def shifted(axes: Axes, points: float, base: Transform | None = None) -> Transform:
    """Return coordinates of data (or `base`), shifted sideways by points of the page."""
    from matplotlib.transforms import ScaledTranslation

    scale = axes.figure.dpi_scale_trans
    return (base or axes.transData) + ScaledTranslation(points / 72, 0, scale)


def draw_bars(axes: Axes, dots: Sequence[Dot], style: Style) -> list[float]:
    """Draw the intervals of the means; return their ends."""
    known = [dot for dot in dots if "low" in dot.row]
    if not known:
        return []
    low, high = ([float(dot.row[end]) for dot in known] for end in ("low", "high"))
    # By rounding, the value of runs without any spread may be outside of its interval.
    below = [max(0.0, dot.y - one) for dot, one in zip(known, low, strict=True)]
    above = [max(0.0, one - dot.y) for dot, one in zip(known, high, strict=True)]
    axes.errorbar(
        *_xy(known), yerr=[below, above], fmt="none", ecolor=style.colour, elinewidth=1.1,
        capsize=2, transform=shifted(axes, style.beside),
    )  # fmt: skip
    return low + high


def _parts(dots: Sequence[Dot], gaps: Sequence[int]) -> list[list[Dot]]:
    parts: list[list[Dot]] = []
    for dot in dots:
        last = parts[-1][-1].row["size"] if parts else None
        if last is None or any(last < gap < dot.row["size"] for gap in gaps):
            parts.append([])
        parts[-1].append(dot)
    return parts


def nothing(axes: Axes) -> None:
    """Write on a panel that it has no values."""
    axes.text(0.5, 0.5, "nothing to draw", transform=axes.transAxes, ha="center", color=GREY)


def _keep(canvas: Canvas, artist: Any, dots: Sequence[Dot]) -> None:
    explain(canvas, artist, [dot.title for dot in dots])
    quantity = {"quantity": artist.axes.get_ylabel()}
    canvas.rows.extend(quantity | dot.row for dot in dots)


def _xy(dots: Sequence[Dot]) -> tuple[list[float], list[float]]:
    return [dot.x for dot in dots], [dot.y for dot in dots]


def draw_hollow(canvas: Canvas, axes: Axes, plot: PlotData, *, runs: bool = False) -> bool:
    """Draw a hollow marker for each point without a result; return whether there is any.

    A point without any result is a large marker; with `runs`, missing runs of other points are
    small markers.
    """
    lost: dict[tuple[Any, ...], list[Row]] = {}
    for row in plot.runs:
        if row["state"] != OK:
            lost.setdefault(point_of(row), []).append(row)
    anything = False
    for style in plot.styles:
        empty = [_point(row, lost) for row in plot.empty(style)]
        some = [row for row in plot.own(style) if row["size"] and row["n_ok"]] if runs else []
        fewer = [_runs(row, lost) for row in some if point_of(row) in lost]
        _draw(canvas, axes, empty, style, style.beside)
        _draw(canvas, axes, fewer, style, style.runs)
        anything = anything or bool(empty or fewer)
    return anything


def _point(row: Row, lost: Lost) -> Dot:
    about = {"drawn": "no result", "series": row["series"], "size": row["size"],
             "state": row["not_ok"]}  # fmt: skip
    return Dot(row["size"], HEIGHT, _words(lost.get(point_of(row), ())), about)


def _runs(row: Row, lost: Lost) -> Dot:
    own = lost[point_of(row)]
    about = {"drawn": "runs without a result", "series": row["series"], "size": row["size"],
             "runs": len(own), "state": row["not_ok"]}  # fmt: skip
    return Dot(row["size"], HEIGHT, _words(own), about)


def _words(runs: Sequence[Row]) -> str:
    return one_line("; ".join(f"{run['run_id']}: {run['state']}" for run in runs) or "no run")


def _draw(canvas: Canvas, axes: Axes, dots: Sequence[Dot], style: Style, shift: float) -> None:
    if dots:
        size = style.marker_points + 1 if shift == style.beside else SMALLER * style.marker_points
        (artist,) = axes.plot(
            [dot.x for dot in dots], [dot.y for dot in dots], style.marker, mfc="none",
            mec=style.colour, mew=1.4, ms=size, ls="none",
            transform=shifted(axes, shift, axes.get_xaxis_transform()),
        )  # fmt: skip
        explain(canvas, artist, [dot.title for dot in dots])
        canvas.rows.extend(dot.row for dot in dots)
