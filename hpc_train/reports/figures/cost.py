"""Figure: GPU-hours against minutes for a million samples, or tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hpc_train.base.metrics import BASES
from hpc_train.reports.figures.axes import value_axis
from hpc_train.reports.figures.canvas import Canvas, opened
from hpc_train.reports.figures.markers import GREY, Dot, draw_means, draw_runs, mean_dot, run_dot
from hpc_train.reports.figures.plot_data import PlotData, usable
from hpc_train.reports.figures.scaling import shown_basis
from hpc_train.reports.figures.titles_and_legend import (
    LegendEntry,
    draw_legend,
    draw_title,
    heading_lines,
)
from hpc_train.reports.point_and_series_names import SizeUnit, counted
from hpc_train.reports.study_tables import OK
from hpc_train.reports.value_format import Row, significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COST = "gpu_hours_per_million"
MILLION = 1e6
# Room that the size of a point needs, in pixels of the figure before its layout.
LABEL = (75.0, 18.0)
# Number of series with a label at every point.
LABELLED = 3
# Room for the labels below the points of more series, as a share of the axis.
BELOW = 0.08


def draw(plot: PlotData) -> Canvas | None:
    """Draw GPU-hours against minutes for 1e6 samples or tokens; the lower left is better in both.

    A series that scales ideally is a horizontal line. Ringed points are Pareto-optimal: no other
    point is both faster and cheaper.
    """
    items = BASES[shown_basis(plot.points)].counted
    known = [row for row in plot.points if _known(row, items)]
    if len(known) < 2:
        return None
    canvas = opened(f"{plot.study.name}: cost against time of a million {items}", plot.paper)
    axes = canvas.figure.subplots()
    axes.set(xlabel=f"minutes per million {items}", ylabel=f"GPU-h per million {items}")
    xs: list[float] = []
    ys: list[float] = []
    for style in plot.styles:
        # Both axes are measured: no mark is shifted.
        style = style._replace(runs=0.0)
        dots = [_mean(row, items) for row in plot.own(style) if _known(row, items)]
        runs = _runs(plot.own_runs(style), items)
        draw_runs(canvas, axes, runs, style)
        draw_means(canvas, axes, dots, style, plot.gaps(style))
        xs += [dot.x for dot in (*dots, *runs)]
        ys += [dot.y for dot in (*dots, *runs)]
    front = pareto([_place(row, items) for row in known])
    axes.plot(
        [x for x, _ in front], [y for _, y in front], "o", mfc="none", mec="black", mew=0.9, ms=12
    )
    value_axis(axes, ys, hollow=False, doubling=False)
    _minutes(axes, xs)
    _label(axes, known, plot.unit, items)
    left_out = sum(1 for row in plot.points if not _known(row, items))
    draw_title(canvas, heading_lines(plot, left_out))
    draw_legend(canvas, plot, _entries())
    return canvas


def pareto(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the indices of the Pareto-optimal points, sorted by the first value."""
    front: list[tuple[float, float]] = []
    for x, y in sorted(set(places)):
        if not front or y < front[-1][1]:
            front.append((x, y))
    return front


def _known(row: Row, items: str) -> bool:
    return usable(row, f"{items}_per_second") and (row.get(COST) or 0) > 0


def _place(row: Row, items: str) -> tuple[float, float]:
    return MILLION / row[f"{items}_per_second"] / 60, row[COST]


def _mean(row: Row, items: str) -> Dot:
    x, y = _place(row, items)
    shown = f"{significant(y)} GPU-hours, {significant(x)} minutes per million {items}"
    dot = mean_dot(row, y, shown, x)
    return dot._replace(row=dot.row | {"minutes_per_million": x})


def _runs(rows: Sequence[Row], items: str) -> list[Dot]:
    dots = []
    for row in rows:
        gpus = (row["nodes"] or 0) * (row["gpus_per_node"] or 0)
        if row["state"] == OK and gpus and usable(row, f"{items}_per_second"):
            minutes = MILLION / row[f"{items}_per_second"] / 60
            shown = f"{significant(minutes * gpus / 60)} GPU-hours, {significant(minutes)} minutes"
            dot = run_dot(row, minutes * gpus / 60, f"{shown} per million {items}", minutes)
            dots.append(dot._replace(row=dot.row | {"minutes_per_million": minutes}))
    return dots


def _minutes(axes: Axes, xs: Sequence[float]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator

    low, high = min(xs), max(xs)
    low, high = min(low, high / 1.1), max(high, low * 1.1)
    room = (high / low) ** 0.08
    axes.set_xscale("log", base=10)
    axes.set_xlim(low / room, high * room)
    subs = (1, 2, 3, 5, 7) if high / low < 20 else (1, 2, 5) if high / low < 2000 else (1,)
    axes.xaxis.set_major_locator(LogLocator(10, subs=subs, numticks=12))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}"))
    axes.xaxis.minorticks_off()


def _label(axes: Axes, known: Sequence[Row], unit: SizeUnit, items: str) -> None:
    """Label points with their sizes if there is space; of many series only the Pareto front."""
    front = set(pareto([_place(row, items) for row in known]))
    taken: list[tuple[float, float]] = []
    few = len({row["series"] for row in known}) <= LABELLED
    own = [row for row in known if few or _place(row, items) in front]
    beside: dict[str, Any] = {"xytext": (7, 5)}
    if not few:
        # Below the front of many series there are no lines.
        beside = {"xytext": (0, -9), "ha": "center", "va": "top"}
        low, high = axes.get_ylim()
        axes.set_ylim(low * (low / high) ** BELOW, high)
    for row in sorted(own, key=lambda row: _place(row, items) not in front):
        x, y = axes.transData.transform(_place(row, items))
        if any(abs(x - a) < LABEL[0] and abs(y - b) < LABEL[1] for a, b in taken):
            continue
        taken.append((x, y))
        axes.annotate(
            counted(row["size"], unit.name), _place(row, items), **beside,
            textcoords="offset points", fontsize="small", color=GREY,
        )  # fmt: skip


def _entries() -> list[LegendEntry]:
    from matplotlib.lines import Line2D

    ring = Line2D([], [], ls="none", marker="o", mfc="none", mec="black", mew=0.9, ms=10)
    return [(ring, "Pareto-optimal")]
