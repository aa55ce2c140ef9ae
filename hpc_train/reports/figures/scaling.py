"""Figure: throughput and speedup against the size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hpc_train.base.metrics import BASES, BASIS_COLUMNS
from hpc_train.reports.figures.axes import size_axis, value_axis
from hpc_train.reports.figures.canvas import WIDE, Canvas, opened, panels
from hpc_train.reports.figures.efficiency import draw_efficiency, has_efficiency
from hpc_train.reports.figures.markers import (
    DOTTED,
    GREY,
    Dot,
    draw_bars,
    draw_hollow,
    draw_means,
    draw_runs,
    mean_dot,
    nothing,
    run_dot,
    with_limits,
)
from hpc_train.reports.figures.plot_data import PlotData, usable
from hpc_train.reports.figures.small_multiples import ghost_entry, in_legend, many, split
from hpc_train.reports.figures.titles_and_legend import (
    draw_legend,
    draw_title,
    heading_lines,
    limits,
)
from hpc_train.reports.point_and_series_names import has_own_baselines, rate
from hpc_train.reports.study_tables import OK
from hpc_train.reports.value_format import Row, significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Line = tuple[tuple[float, float], ...]


def draw(plot: PlotData) -> Canvas:
    """Draw throughput and, if there is more than a baseline, efficiency.

    Left: throughput [samples/s] (or 1/time, where there is none), every run a point, the mean a
    line, the ideal from the fastest baseline. Right: efficiency with intervals, from 0. Points
    without any ok run are hollow on the axis and never joined. Many series have one panel of
    throughput each; their efficiencies are in a figure of their own.
    """
    both = has_efficiency(plot) and not many(plot)
    shown = "throughput and efficiency" if both else "throughput"
    caption = f"{plot.study.name}: {shown} against the number of {plot.unit.plural}"
    if both:
        canvas = opened(caption, plot.paper, WIDE)
        left, right = panels(canvas, 2)
        left_out = draw_rates(canvas, [(left, plot)], plot)
        draw_efficiency(canvas, [(right, plot)], plot)
        right.set_title(_efficiency_title(plot))
    else:
        canvas, separate = split(caption, plot)
        left_out = draw_rates(canvas, separate, plot)
    draw_title(canvas, heading_lines(plot, left_out))
    draw_legend(canvas, plot, [*limits(plot), *ghost_entry(plot)], series=in_legend(canvas, plot))
    return canvas


def draw_rates(canvas: Canvas, separate: Sequence[tuple[Axes, PlotData]], plot: PlotData) -> int:
    """Draw every run, the mean of each point with its interval, and the ideal of the panel.

    Returns the number of points that could not be drawn: their size is unknown, or their runs lack
    the basis of most series.
    """
    basis = shown_basis(plot.points)
    grows = any(row["work"] != 1 for row in plot.points if row["basis"] == basis)
    label = f"{BASES[basis].at_axis}{' x ranks' if grows else ''}"
    values: list[float] = []
    drawn, hollow = 0, False
    for axes, own in separate:
        axes.set(xlabel=plot.unit.plural, ylabel=label)
        means, shown = _draw_series(canvas, axes, own, basis)
        drawn, values = drawn + means, values + shown
        hollow = draw_hollow(canvas, axes, own, runs=True) or hollow
    if len(separate) == 1:
        separate[0][0].set_title(f"{label.partition(' [')[0].capitalize()}: {_marks(plot, basis)}")
    for axes, _ in separate:
        size_axis(axes, plot.place)
        value_axis(axes, values, hollow=hollow, doubling=False)
        if not values:
            nothing(axes)
    return sum(bool(row["n_ok"] or not row["size"]) for row in plot.points) - drawn


def _draw_series(canvas: Canvas, axes: Axes, plot: PlotData, basis: str) -> tuple[int, list[float]]:
    """Draw the series of a panel; return the number of means, and every value."""
    ideal = _ideal(plot, basis)
    axes.plot([x for x, _ in ideal], [y for _, y in ideal], color=GREY, lw=1.2, ls=DOTTED, zorder=1)
    canvas.rows.extend(
        {"quantity": axes.get_ylabel(), "drawn": "ideal", "size": x, "value": y} for x, y in ideal
    )
    drawn, values = 0, [y for _, y in ideal]
    for style in plot.styles:
        means = _means(plot.own(style), basis, axes.get_ylabel())
        runs = _runs(plot.own_runs(style), basis, axes.get_ylabel())
        draw_runs(canvas, axes, runs, style)
        draw_means(canvas, axes, means, style, plot.gaps(style))
        values += [dot.y for dot in (*runs, *means)] + draw_bars(axes, means, style)
        drawn += len(means)
    return drawn, values


def _marks(plot: PlotData, basis: str) -> str:
    known = basis == "throughput" and any(row["samples_per_second_low"] for row in plot.points)
    return "each run, mean, interval" if known else "each run and their mean"


def _efficiency_title(plot: PlotData) -> str:
    if has_own_baselines(plot.points):
        return "Efficiency: each series against its own baseline"
    known = any(row["efficiency_low"] is not None for row in plot.points)
    return "Efficiency: each run, mean, interval" if known else "Efficiency against the baseline"


def shown_basis(points: Sequence[Row]) -> str:
    """Return the basis of all series; if they differ, the most common, or the first at a tie."""
    bases = [str(row["basis"]) for row in points if row["n_ok"]] or ["throughput"]
    return max(dict.fromkeys(bases), key=bases.count)


def _ideal(plot: PlotData, basis: str) -> Line:
    """Return the ideal rate from the baseline with the highest rate at its size."""
    rates = [
        ((rate(row, basis) or 0) / row["size"], row["size"])
        for row in plot.points
        if row["is_baseline"] and usable(row, BASIS_COLUMNS[basis])
    ]
    if not rates or not any(row["ideal"] for row in plot.points):
        return ()
    each, base = max(rates)
    return tuple((x, each * x) for x in plot.place.sizes if x >= base)


def _means(rows: Sequence[Row], basis: str, label: str) -> list[Dot]:
    dots = []
    for row in rows:
        if row["size"] and (y := rate(row, basis)):
            dot = mean_dot(row, y, _words(y, label))
            if basis == "throughput":
                limits = (row["samples_per_second_low"], row["samples_per_second_high"])
                dot = with_limits(dot, *(limit or None for limit in limits))
            dots.append(dot)
    return dots


def _runs(rows: Sequence[Row], basis: str, label: str) -> list[Dot]:
    dots = []
    for row in rows:
        if row["state"] == OK and row["size"] and (y := rate(row, basis)):
            dots.append(run_dot(row, y, _words(y, label)))
    return dots


def _words(value: float, label: str) -> str:
    name, _, unit = label.partition(" [")
    return f"{significant(value)} {unit.rstrip(']') or name}"
