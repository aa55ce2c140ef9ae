"""Figure: throughput against the peak memory of a rank, of each strategy and size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hpc_train.reports.figures.axes import value_axis
from hpc_train.reports.figures.canvas import Canvas, opened
from hpc_train.reports.figures.cost import pareto
from hpc_train.reports.figures.markers import GREY, Dot, draw_marks
from hpc_train.reports.figures.plot_data import PlotData
from hpc_train.reports.figures.titles_and_legend import (
    LegendEntry,
    draw_legend,
    draw_title,
    titled,
)
from hpc_train.reports.plain_rows import Row
from hpc_train.reports.point_and_series_names import counted
from hpc_train.reports.value_format import one_line, significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MEMORY = "peak memory of a rank [GiB]\n(on a CPU: resident set of the process, with torch)"
_READING = "the upper left is better; numbers of ranks stand at the points"


def draw(plot: PlotData) -> Canvas | None:
    """Draw the throughput of strategies against memory; the upper left is better in both.

    Ringed points are Pareto-optimal among those of their number of ranks: none of them is faster
    with less memory in a rank. More ranks are faster, so that sizes have no common choice.
    """
    known = [row for row in plot.strategies if row["memory_gib"] and row["samples_per_second"]]
    shown = {style.series for style in plot.styles}
    known = [row for row in known if row["series"] in shown]
    if len({row["strategy"] for row in known}) < 2:
        return None
    canvas = opened(f"{plot.study.name}: throughput against memory of a rank", plot.paper)
    axes = canvas.figure.subplots()
    axes.set(xlabel=_MEMORY, ylabel="samples/s")
    for style in plot.styles:
        own = [row for row in known if row["series"] == style.series]
        dots = [_dot(row) for row in sorted(own, key=lambda row: row["ranks"])]
        places = [dot.x for dot in dots], [dot.y for dot in dots]
        axes.plot(*places, color=style.colour, ls=style.dashes, lw=1.4)
        draw_marks(canvas, axes, dots, style)
        _label(axes, own)
    _ring(axes, known)
    value_axis(axes, [row["samples_per_second"] for row in known], hollow=False, doubling=False)
    draw_title(canvas, titled(plot, [_READING]))
    draw_legend(canvas, plot, _entries())
    return canvas


def _dot(row: Row) -> Dot:
    ranks, rate, memory = row["ranks"], row["samples_per_second"], row["memory_gib"]
    title = (
        f"{row['strategy']}, {counted(ranks, 'rank')}: {significant(rate)} samples/s, "
        f"{significant(memory)} GiB, median of {counted(row['n'], 'run')}"
    )
    about = {
        "drawn": "median", "series": row["series"], "ranks": ranks, "runs": row["n"],
        "value": rate, "memory_gib": memory,
    }  # fmt: skip
    return Dot(memory, rate, one_line(title), about)


def _label(axes: Axes, rows: list[Row]) -> None:
    for row in rows:
        place = (row["memory_gib"], row["samples_per_second"])
        axes.annotate(
            f"{row['ranks']:,}", place, xytext=(5, 4), textcoords="offset points",
            fontsize="small", color=GREY,
        )  # fmt: skip


def _ring(axes: Axes, known: list[Row]) -> None:
    for front in _fronts(known):
        axes.plot(
            [x for x, _ in front], [-y for _, y in front],
            "o", mfc="none", mec="black", mew=0.9, ms=12,
        )  # fmt: skip


def _fronts(known: Sequence[Row]) -> list[list[tuple[float, float]]]:
    """Return the Pareto-optimal points of each number of ranks with several strategies."""
    sizes = dict.fromkeys(row["ranks"] for row in known)
    groups = [[row for row in known if row["ranks"] == size] for size in sizes]
    return [
        pareto([(row["memory_gib"], -row["samples_per_second"]) for row in rows])
        for rows in groups
        if len({row["strategy"] for row in rows}) > 1
    ]


def _entries() -> list[LegendEntry]:
    from matplotlib.lines import Line2D

    ring = Line2D([], [], ls="none", marker="o", mfc="none", mec="black", mew=0.9, ms=10)
    return [(ring, "Pareto-optimal among the same number of ranks")]
