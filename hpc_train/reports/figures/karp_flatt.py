"""Figure: the serial fraction after Karp and Flatt against the number of ranks."""

from __future__ import annotations

from hpc_train.reports.figures.axes import plain_axis, size_axis
from hpc_train.reports.figures.canvas import Canvas, opened
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
from hpc_train.reports.figures.series_styles import Style
from hpc_train.reports.figures.titles_and_legend import (
    draw_legend,
    draw_title,
    heading_lines,
    hollow_entry,
)
from hpc_train.reports.plain_rows import Row

# Space below the lowest value for hollow markers, as a fraction of the height.
ROOM = 0.12


def draw(plot: PlotData) -> Canvas | None:
    """Draw e = (1/S - 1/q)/(1 - 1/q) with its interval (Karp and Flatt, CACM 1990).

    A constant e is a serial part, a rising e is overhead; at small sizes e is mostly noise.
    """
    if not any(_known(row) for row in plot.points):
        return None
    canvas = opened(f"{plot.study.name}: serial fraction after Karp and Flatt")
    axes = canvas.figure.subplots()
    axes.set(xlabel="ranks", ylabel="serial fraction e [%]")
    values = [0.0]
    for style in plot.styles:
        means = [_mean(row, style) for row in plot.own(style) if _known(row)]
        draw_means(canvas, axes, means, style, plot.gaps(style))
        values += [dot.y for dot in means] + draw_bars(axes, means, style)
    axes.axhline(0, color=GREY, lw=1, zorder=1)
    axes.set_title("Flat: a serial part; rising: overhead")
    hollow = draw_hollow(canvas, axes, plot)
    size_axis(axes, plot.place)
    low, high = min(values), max(values)
    plain_axis(axes, low - (high - low) * (ROOM if hollow or low < 0 else 0), max(high, 0.1))
    draw_title(canvas.figure, heading_lines(plot, runs=False))
    draw_legend(canvas.figure, plot, hollow_entry(plot))
    return canvas


def _known(row: Row) -> bool:
    return row.get("karp_flatt") is not None and bool(row["ranks"])


def _mean(row: Row, style: Style) -> Dot:
    value = 100 * row["karp_flatt"]
    dot = mean_dot(row, row["ranks"] * style.mean, value, f"e = {value:.3g} %")
    limits = (row.get("karp_flatt_low"), row.get("karp_flatt_high"))
    return with_limits(dot, *(None if limit is None else 100 * limit for limit in limits))
