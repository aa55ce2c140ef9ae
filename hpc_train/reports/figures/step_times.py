"""Figure: step times at each size, and their variation within the runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hpc_train.reports.figures.axes import size_axis, value_axis
from hpc_train.reports.figures.canvas import WIDE, Canvas, opened
from hpc_train.reports.figures.markers import (
    GREY,
    Dot,
    draw_hollow,
    draw_means,
    draw_runs,
    mean_dot,
    run_dot,
)
from hpc_train.reports.figures.plot_data import PlotData, point_of
from hpc_train.reports.figures.scaling import usable
from hpc_train.reports.figures.series_styles import Style, room
from hpc_train.reports.figures.titles_and_legend import (
    LegendEntry,
    draw_legend,
    draw_title,
    heading_lines,
    hollow_entry,
)
from hpc_train.reports.plain_rows import Row
from hpc_train.reports.study_tables import OK
from hpc_train.reports.value_format import significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Units = Mapping[tuple[Any, ...], float]
QUANTILES = ("step_p05_s", "step_p25_s", "step_p75_s", "step_p95_s")
# Width of a box, in sizes of its marker.
BOX = 1.3


def draw(plot: PlotData) -> Canvas | None:
    """Draw the quantiles of the steps of each point, their median, and the median of each run.

    Box: from the 25th to the 75th percentile; line: from the 5th to the 95th. Right: the same
    divided by the point's median, because the spread is not visible in a study over many sizes.
    """
    if not any(_spread(row) for row in plot.points):
        return None
    canvas = opened(f"{plot.study.name}: distribution of step times", WIDE)
    left, right = canvas.figure.subplots(1, 2)
    left.set(xlabel="ranks", ylabel="step time [ms]", title="Step time: median and spread")
    right.set(xlabel="ranks", ylabel="step time / median", title="Spread over the point's median")
    _draw_panel(canvas, left, plot, lambda row: 1e-3)
    _draw_panel(canvas, right, plot, lambda row: row["step_time_s"])
    draw_title(canvas.figure, heading_lines(plot))
    draw_legend(canvas.figure, plot, [*_entries(), *hollow_entry(plot, runs=True)])
    return canvas


def _draw_panel(canvas: Canvas, axes: Axes, plot: PlotData, unit: Callable[[Row], float]) -> None:
    """Draw step times in the unit of their point."""
    values: list[float] = []
    for style in plot.styles:
        own = [row for row in plot.own(style) if usable(row, "step_time_s")]
        units = {point_of(row): unit(row) for row in own}
        medians = [_median(row, style, units[point_of(row)]) for row in own]
        runs = _runs(plot.own_runs(style), style, units)
        draw_runs(canvas, axes, runs, style)
        width = min(BOX * style.marker_points, 0.5 * room(plot.place))
        values += _draw_boxes(axes, [row for row in own if _spread(row)], style, units, width)
        draw_means(canvas, axes, medians, style._replace(dashes="none"))
        values += [dot.y for dot in (*medians, *runs)]
    hollow = draw_hollow(canvas, axes, plot, runs=True)
    size_axis(axes, plot.place)
    value_axis(axes, values, hollow=hollow, doubling=False)


def _draw_boxes(
    axes: Axes, rows: Sequence[Row], style: Style, units: Units, width: float
) -> list[float]:
    where = [row["ranks"] * style.mean for row in rows]
    p05, p25, p75, p95 = ([row[name] / units[point_of(row)] for row in rows] for name in QUANTILES)
    axes.vlines(where, p05, p95, color=style.colour, lw=1.2)
    axes.vlines(where, p25, p75, color=style.colour, lw=width, alpha=0.45)
    return p05 + p95


def _median(row: Row, style: Style, unit: float) -> Dot:
    shown = f"{significant(1e3 * row['step_time_s'])} ms"
    dot = mean_dot(row, row["ranks"] * style.mean, row["step_time_s"] / unit, shown)
    if not _spread(row):
        return dot
    shares = {name.removeprefix("step_").removesuffix("_s"): row[name] / unit for name in QUANTILES}
    ends = " to ".join(significant(1e3 * row[name]) for name in (QUANTILES[0], QUANTILES[-1]))
    return dot._replace(title=f"{dot.title}, 90 % of steps {ends} ms", row=dot.row | shares)


def _runs(rows: Sequence[Row], style: Style, units: Units) -> list[Dot]:
    dots = []
    for row in rows:
        if row["state"] == OK and usable(row, "step_time_s"):
            time, unit = row["step_time_s"], units[point_of(row)]
            shown = f"{significant(1e3 * time)} ms"
            dots.append(run_dot(row, row["ranks"] * style.runs, time / unit, shown))
    return dots


def _spread(row: Row) -> bool:
    return bool(row["ranks"]) and all((row.get(name) or 0) > 0 for name in QUANTILES)


def _entries() -> list[LegendEntry]:
    from matplotlib.lines import Line2D

    thick = Line2D([], [], color=GREY, lw=5, alpha=0.45, solid_capstyle="butt")
    return [
        (thick, "box: 25 to 75 % of steps"),
        (Line2D([], [], color=GREY, lw=1.2), "line: 5 to 95 % of steps"),
    ]
