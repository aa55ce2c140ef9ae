"""Figure: step times at each size, and their variation within the runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hpc_train.reports.figures.drawing import Drawing, point_of
from hpc_train.reports.figures.hollow import draw_hollow
from hpc_train.reports.figures.legend import (
    Entry,
    draw_legend,
    draw_title,
    heading_lines,
    hollow_entry,
)
from hpc_train.reports.figures.looks import Look, room
from hpc_train.reports.figures.marks import (
    GREY,
    Dot,
    draw_means,
    draw_runs,
    mean_dot,
    run_dot,
)
from hpc_train.reports.figures.rates import usable
from hpc_train.reports.figures.scales import size_axis, value_axis
from hpc_train.reports.figures.sheet import WIDE, Sheet, opened
from hpc_train.reports.numbers import significant
from hpc_train.reports.tables import OK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = Mapping[str, Any]
Units = Mapping[tuple[Any, ...], float]
QUANTILES = ("step_p05_s", "step_p25_s", "step_p75_s", "step_p95_s")
# Width of a box, in sizes of its marker.
BOX = 1.3


def draw(drawing: Drawing) -> Sheet | None:
    """Draw the quantiles of the steps of each point, their median, and the median of each run.

    Box: from the 25th to the 75th percentile; line: from the 5th to the 95th. Right: the same
    divided by the point's median, because the spread is not visible in a study over many sizes.
    """
    if not any(_spread(row) for row in drawing.points):
        return None
    sheet = opened(f"{drawing.study.name}: distribution of step times", WIDE)
    left, right = sheet.canvas.subplots(1, 2)
    left.set(xlabel="ranks", ylabel="step time [ms]", title="Step time: median and spread")
    right.set(xlabel="ranks", ylabel="step time / median", title="Spread over the point's median")
    _draw_panel(sheet, left, drawing, lambda row: 1e-3)
    _draw_panel(sheet, right, drawing, lambda row: row["step_time_s"])
    draw_title(sheet.canvas, heading_lines(drawing))
    draw_legend(sheet.canvas, drawing, [*_entries(), *hollow_entry(drawing, runs=True)])
    return sheet


def _draw_panel(sheet: Sheet, axes: Axes, drawing: Drawing, unit: Callable[[Row], float]) -> None:
    """Draw step times in the unit of their point."""
    values: list[float] = []
    for look in drawing.looks:
        own = [row for row in drawing.own(look) if usable(row, "step_time_s")]
        units = {point_of(row): unit(row) for row in own}
        medians = [_median(row, look, units[point_of(row)]) for row in own]
        runs = _runs(drawing.own_runs(look), look, units)
        draw_runs(sheet, axes, runs, look)
        width = min(BOX * look.marker_points, 0.5 * room(drawing.place))
        values += _draw_boxes(axes, [row for row in own if _spread(row)], look, units, width)
        draw_means(sheet, axes, medians, look._replace(dashes="none"))
        values += [dot.y for dot in (*medians, *runs)]
    hollow = draw_hollow(sheet, axes, drawing, runs=True)
    size_axis(axes, drawing.place)
    value_axis(axes, values, hollow=hollow, doubling=False)


def _draw_boxes(
    axes: Axes, rows: Sequence[Row], look: Look, units: Units, width: float
) -> list[float]:
    where = [row["ranks"] * look.mean for row in rows]
    p05, p25, p75, p95 = ([row[name] / units[point_of(row)] for row in rows] for name in QUANTILES)
    axes.vlines(where, p05, p95, color=look.colour, lw=1.2)
    axes.vlines(where, p25, p75, color=look.colour, lw=width, alpha=0.45)
    return p05 + p95


def _median(row: Row, look: Look, unit: float) -> Dot:
    shown = f"{significant(1e3 * row['step_time_s'])} ms"
    dot = mean_dot(row, row["ranks"] * look.mean, row["step_time_s"] / unit, shown)
    if not _spread(row):
        return dot
    shares = {name.removeprefix("step_").removesuffix("_s"): row[name] / unit for name in QUANTILES}
    ends = " to ".join(significant(1e3 * row[name]) for name in (QUANTILES[0], QUANTILES[-1]))
    return dot._replace(title=f"{dot.title}, 90 % of steps {ends} ms", row=dot.row | shares)


def _runs(rows: Sequence[Row], look: Look, units: Units) -> list[Dot]:
    dots = []
    for row in rows:
        if row["state"] == OK and usable(row, "step_time_s"):
            time, unit = row["step_time_s"], units[point_of(row)]
            shown = f"{significant(1e3 * time)} ms"
            dots.append(run_dot(row, row["ranks"] * look.runs, time / unit, shown))
    return dots


def _spread(row: Row) -> bool:
    return bool(row["ranks"]) and all((row.get(name) or 0) > 0 for name in QUANTILES)


def _entries() -> list[Entry]:
    from matplotlib.lines import Line2D

    thick = Line2D([], [], color=GREY, lw=5, alpha=0.45, solid_capstyle="butt")
    return [
        (thick, "box: 25 to 75 % of steps"),
        (Line2D([], [], color=GREY, lw=1.2), "line: 5 to 95 % of steps"),
    ]
