"""Parallel efficiency against the number of ranks: a panel, and the figure of many series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hpc_train.base.metrics import BASES, BASIS_COLUMNS
from hpc_train.reports.figures.axes import plain_axis, size_axis
from hpc_train.reports.figures.canvas import Canvas
from hpc_train.reports.figures.markers import (
    DOTTED,
    GATE,
    GREY,
    Dot,
    draw_bars,
    draw_hollow,
    draw_means,
    draw_runs,
    mean_dot,
    run_dot,
    with_limits,
)
from hpc_train.reports.figures.plot_data import PlotData, point_of, usable
from hpc_train.reports.figures.series_styles import Style
from hpc_train.reports.figures.small_multiples import ghost_entry, in_legend, many, split
from hpc_train.reports.figures.titles_and_legend import (
    draw_legend,
    draw_title,
    gate_entry,
    heading_lines,
    hollow_entry,
    ideal_entry,
)
from hpc_train.reports.study_tables import OK
from hpc_train.reports.value_format import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(plot: PlotData) -> Canvas | None:
    """Draw the efficiency of each of many series; that of a few is in the main figure."""
    if not has_efficiency(plot) or not many(plot):
        return None
    caption = f"{plot.study.name}: parallel efficiency against the number of {plot.unit.plural}"
    canvas, separate = split(caption, plot)
    draw_efficiency(canvas, separate, plot)
    draw_title(canvas, heading_lines(plot))
    entries = [*hollow_entry(plot, runs=True), *gate_entry(plot), ideal_entry(), *ghost_entry(plot)]
    draw_legend(canvas, plot, entries, series=in_legend(canvas, plot))
    return canvas


def has_efficiency(plot: PlotData) -> bool:
    """Whether a point other than a baseline has an efficiency."""
    return any(_known(row) and not row["is_baseline"] for row in plot.points)


def draw_efficiency(
    canvas: Canvas, separate: Sequence[tuple[Axes, PlotData]], plot: PlotData
) -> None:
    """Draw efficiency E = S/q [%] from 0, every run a point, computed from its own rate.

    The runs of the baseline scatter around 100 %; every interval includes this scatter.
    """
    values = [100.0]
    for axes, own in separate:
        axes.set(xlabel=plot.unit.plural, ylabel="efficiency [%]")
        values += _draw_panel(canvas, axes, own)
        draw_hollow(canvas, axes, own, runs=True)
    gate = plot.study.gates.efficiency
    if gate is not None:
        canvas.rows.append({"quantity": "efficiency [%]", "drawn": "gate", "value": 100 * gate})
    for axes, _ in separate:
        size_axis(axes, plot.place)
        plain_axis(axes, 0.0, max(values))


def _draw_panel(canvas: Canvas, axes: Axes, plot: PlotData) -> list[float]:
    """Draw the runs, means and intervals, 100 % and the gate; return the values."""
    values: list[float] = []
    for style in plot.styles:
        means = [_mean(row) for row in plot.own(style) if _known(row)]
        runs = _runs(plot, style)
        draw_runs(canvas, axes, runs, style)
        draw_means(canvas, axes, means, style, plot.gaps(style))
        values += [dot.y for dot in (*means, *runs)] + draw_bars(axes, means, style)
    axes.axhline(100, color=GREY, lw=1.2, ls=DOTTED, zorder=1)
    gate = plot.study.gates.efficiency
    if gate is not None:
        axes.axhline(100 * gate, color=GATE, lw=1.4, zorder=1)
    return values


def _mean(row: Row) -> Dot:
    value = 100 * row["efficiency"]
    dot = mean_dot(row, value, f"{value:.1f} % of ideal")
    limits = (row["efficiency_low"], row["efficiency_high"])
    return with_limits(dot, *(None if limit is None else 100 * limit for limit in limits))


def _runs(plot: PlotData, style: Style) -> list[Dot]:
    points = {point_of(row): row for row in plot.own(style)}
    dots = []
    for run in plot.own_runs(style):
        point = points[point_of(run)]
        column = BASIS_COLUMNS[point["basis"]]
        whole = point["efficiency"] and usable(point, column)
        if run["state"] == OK and whole and usable(run, column):
            ratio = run[column] / point[column]
            rate = ratio if BASES[point["basis"]].is_rate else 1 / ratio
            value = 100 * point["efficiency"] * rate
            dots.append(run_dot(run, value, f"{value:.1f} % of ideal"))
    return dots


def _known(row: Row) -> bool:
    return bool(row["efficiency"] and row["size"])
