"""Figure: step times at each size, and their variation within the runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hpc_train.reports.figures.axes import size_axis, value_axis
from hpc_train.reports.figures.canvas import WIDE, Canvas, opened, panels
from hpc_train.reports.figures.markers import (
    GREY,
    Dot,
    draw_hollow,
    draw_marks,
    draw_runs,
    mean_dot,
    run_dot,
    shifted,
)
from hpc_train.reports.figures.plot_data import PlotData, point_of, usable
from hpc_train.reports.figures.series_styles import Style, slot
from hpc_train.reports.figures.small_multiples import many, split
from hpc_train.reports.figures.titles_and_legend import (
    LegendEntry,
    draw_legend,
    draw_title,
    heading_lines,
    hollow_entry,
)
from hpc_train.reports.study_tables import OK
from hpc_train.reports.value_format import Row, significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Units = Mapping[tuple[Any, ...], float]
QUANTILES = ("step_p05_s", "step_p25_s", "step_p75_s", "step_p95_s")
# Width in points of the boxes of a single series; those of several are this much further apart than
# intervals, and fill this share of the distance.
BOX, WIDER, CLOSE = 8.0, 2.0, 0.8


def draw(plot: PlotData) -> Canvas | None:
    """Draw the quantiles of the steps of each point, their median, and the median of each run.

    Box: from the 25th to the 75th percentile; line: from the 5th to the 95th. Right: the same
    divided by the point's median, because the spread is not visible in a study over many sizes.
    """
    if not any(_spread(row) for row in plot.points):
        return None
    caption = f"{plot.study.name}: distribution of step times"
    if many(plot):
        canvas, split_panels = split(caption, plot)
        _draw_panels(canvas, split_panels, "step time [ms]", lambda row: 1e-3)
    else:
        canvas = opened(caption, plot.paper, WIDE)
        left, right = panels(canvas, 2)
        left.set_title("Step time: median and spread")
        right.set_title("Spread over the point's median")
        _draw_panels(canvas, [(left, plot)], "step time [ms]", lambda row: 1e-3)
        _draw_panels(
            canvas, [(right, plot)], "step time / median", lambda row: float(row["step_time_s"])
        )
    draw_title(canvas, heading_lines(plot))
    entries = [*_entries(), *hollow_entry(plot, runs=True)]
    draw_legend(canvas, plot, entries, series=not many(plot))
    return canvas


def _draw_panels(
    canvas: Canvas,
    split_panels: Sequence[tuple[Axes, PlotData]],
    label: str,
    unit: Callable[[Row], float],
) -> None:
    """Draw step times in the unit of their point, in panels of one height."""
    values: list[float] = []
    hollow = False
    for axes, own in split_panels:
        axes.set(xlabel=own.unit.plural, ylabel=label)
        values += _draw_panel(canvas, axes, own, unit)
        hollow = draw_hollow(canvas, axes, own, runs=True) or hollow
    for axes, own in split_panels:
        size_axis(axes, own.place)
        value_axis(axes, values, hollow=hollow, doubling=False)


def _draw_panel(
    canvas: Canvas, axes: Axes, plot: PlotData, unit: Callable[[Row], float]
) -> list[float]:
    values: list[float] = []
    several = len(plot.styles) > 1
    for style in plot.styles:
        aside = WIDER * slot(plot.points) * (len(plot.styles) - 1) / 2
        style = style._replace(beside=WIDER * style.beside, runs=style.runs + aside)
        own = [row for row in plot.own(style) if usable(row, "step_time_s")]
        units = {point_of(row): unit(row) for row in own}
        medians = [_median(row, units[point_of(row)]) for row in own]
        runs = _runs(plot.own_runs(style), units)
        draw_runs(canvas, axes, runs, style)
        width = WIDER * slot(plot.points) * CLOSE if several else BOX
        values += _draw_boxes(axes, [row for row in own if _spread(row)], style, units, width)
        draw_marks(canvas, axes, medians, style, style.beside)
        values += [dot.y for dot in (*medians, *runs)]
    return values


def _draw_boxes(
    axes: Axes, rows: Sequence[Row], style: Style, units: Units, width: float
) -> list[float]:
    where, beside = [row["size"] for row in rows], shifted(axes, style.beside)
    p05, p25, p75, p95 = ([row[name] / units[point_of(row)] for row in rows] for name in QUANTILES)
    axes.vlines(where, p05, p95, color=style.colour, lw=1.2, transform=beside)
    axes.vlines(where, p25, p75, color=style.colour, lw=width, alpha=0.45, transform=beside)
    return p05 + p95


def _median(row: Row, unit: float) -> Dot:
    shown = f"{significant(1e3 * row['step_time_s'])} ms"
    dot = mean_dot(row, row["step_time_s"] / unit, shown)
    if not _spread(row):
        return dot
    shares = {name.removeprefix("step_").removesuffix("_s"): row[name] / unit for name in QUANTILES}
    ends = " to ".join(significant(1e3 * row[name]) for name in (QUANTILES[0], QUANTILES[-1]))
    return dot._replace(title=f"{dot.title}, 90 % of steps {ends} ms", row=dot.row | shares)


def _runs(rows: Sequence[Row], units: Units) -> list[Dot]:
    dots = []
    for row in rows:
        if row["state"] == OK and usable(row, "step_time_s"):
            time, unit = row["step_time_s"], units[point_of(row)]
            shown = f"{significant(1e3 * time)} ms"
            dots.append(run_dot(row, time / unit, shown))
    return dots


def _spread(row: Row) -> bool:
    return bool(row["size"]) and all((row.get(name) or 0) > 0 for name in QUANTILES)


def _entries() -> list[LegendEntry]:
    from matplotlib.lines import Line2D

    thick = Line2D([], [], color=GREY, lw=5, alpha=0.45, solid_capstyle="butt")
    return [
        (thick, "box: 25 to 75 % of steps"),
        (Line2D([], [], color=GREY, lw=1.2), "line: 5 to 95 % of steps"),
    ]
