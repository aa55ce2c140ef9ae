"""Figure: the serial fraction after Karp and Flatt against the number of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpc_train.reports.figures.axes import plain_axis, size_axis
from hpc_train.reports.figures.canvas import Canvas
from hpc_train.reports.figures.markers import (
    GREY,
    Dot,
    draw_bars,
    draw_hollow,
    draw_means,
    mean_dot,
    with_limits,
)
from hpc_train.reports.figures.plot_data import PlotData
from hpc_train.reports.figures.small_multiples import ghost_entry, in_legend, split
from hpc_train.reports.figures.titles_and_legend import (
    draw_legend,
    draw_title,
    heading_lines,
    hollow_entry,
)
from hpc_train.reports.value_format import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Space below the lowest value for hollow markers, as a fraction of the height.
ROOM = 0.12


def draw(plot: PlotData) -> Canvas | None:
    """Draw e = (1/S - 1/q)/(1 - 1/q) with its interval (Karp and Flatt, CACM 1990).

    A constant e is a serial part, a rising e is overhead; at small sizes e is mostly noise.
    """
    if not any(_known(row) for row in plot.points):
        return None
    canvas, split_panels = split(f"{plot.study.name}: serial fraction after Karp and Flatt", plot)
    values, hollow = [0.0], False
    for axes, own in split_panels:
        axes.set(xlabel=plot.unit.plural, ylabel="serial fraction e [%]")
        values += _draw_panel(canvas, axes, own)
        hollow = draw_hollow(canvas, axes, own) or hollow
    low, high = min(values), max(values)
    low -= (high - low) * (ROOM if hollow or low < 0 else 0)
    for axes, _ in split_panels:
        size_axis(axes, plot.place)
        plain_axis(axes, low, max(high, 0.1))
    notes = "a constant fraction is a serial part, a rising one is overhead"
    draw_title(canvas, f"{heading_lines(plot, runs=False)}\n{notes}")
    draw_legend(
        canvas, plot, [*hollow_entry(plot), *ghost_entry(plot)], series=in_legend(canvas, plot)
    )
    return canvas


def _draw_panel(canvas: Canvas, axes: Axes, plot: PlotData) -> list[float]:
    values: list[float] = []
    for style in plot.styles:
        means = [_mean(row) for row in plot.own(style) if _known(row)]
        draw_means(canvas, axes, means, style, plot.gaps(style))
        values += [dot.y for dot in means] + draw_bars(axes, means, style)
    axes.axhline(0, color=GREY, lw=1, zorder=1)
    return values


def _known(row: Row) -> bool:
    return row.get("karp_flatt") is not None and bool(row["size"])


def _mean(row: Row) -> Dot:
    value = 100 * row["karp_flatt"]
    dot = mean_dot(row, value, f"e = {value:.3g} %")
    limits = (row.get("karp_flatt_low"), row.get("karp_flatt_high"))
    return with_limits(dot, *(None if limit is None else 100 * limit for limit in limits))
