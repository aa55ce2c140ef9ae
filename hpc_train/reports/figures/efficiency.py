"""Figure: parallel efficiency against the number of ranks, with the gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpc_train.reports.figures import doubling
from hpc_train.reports.figures.drawing import Drawing, point_of
from hpc_train.reports.figures.hollow import draw_hollow
from hpc_train.reports.figures.legend import (
    draw_legend,
    draw_title,
    gate_entry,
    heading_lines,
    hollow_entry,
    ideal_entry,
)
from hpc_train.reports.figures.looks import Look
from hpc_train.reports.figures.marks import (
    DOTTED,
    GATE,
    GREY,
    Dot,
    draw_bars,
    draw_means,
    draw_runs,
    mean_dot,
    run_dot,
    with_limits,
)
from hpc_train.reports.figures.rates import RATES, usable
from hpc_train.reports.figures.scales import plain_axis, size_axis
from hpc_train.reports.figures.sheet import NARROW, WIDE, Sheet, opened
from hpc_train.reports.tables import OK

Row = Mapping[str, Any]


def draw(drawing: Drawing) -> Sheet | None:
    """Draw efficiency E = S/q [%] from 0, every run a point: E of its point by its own rate.

    The runs of the baseline scatter around 100 %: this is part of every interval.
    """
    known = [row for row in drawing.points if _known(row)]
    if all(row["is_baseline"] for row in known):
        return None
    caption = f"{drawing.study.name}: parallel efficiency against the number of ranks"
    halves = doubling.wanted(drawing)
    sheet = opened(caption, WIDE if halves else NARROW)
    axes, *right = sheet.canvas.subplots(1, 1 + halves, squeeze=False)[0]
    axes.set(xlabel="ranks", ylabel="efficiency [%]")
    values = [100.0]
    for look in drawing.looks:
        means = [_mean(row, look) for row in drawing.own(look) if _known(row)]
        runs = _runs(drawing, look)
        draw_runs(sheet, axes, runs, look)
        draw_means(sheet, axes, means, look, drawing.gaps(look))
        values += [dot.y for dot in (*means, *runs)] + draw_bars(axes, means, look)
    axes.axhline(100, color=GREY, lw=1.2, ls=DOTTED, zorder=1)
    gate = drawing.study.gates.efficiency
    if gate is not None:
        axes.axhline(100 * gate, color=GATE, lw=1.4, zorder=1)
        sheet.rows.append({"quantity": "efficiency [%]", "drawn": "gate", "value": 100 * gate})
    draw_hollow(sheet, axes, drawing, runs=True)
    size_axis(axes, drawing.place)
    plain_axis(axes, 0.0, max(values))
    for panel in right:
        doubling.draw(sheet, panel, drawing)
    draw_title(sheet.canvas, heading_lines(drawing))
    draw_legend(
        sheet.canvas,
        drawing,
        [*hollow_entry(drawing, runs=True), *gate_entry(drawing), ideal_entry()],
    )
    return sheet


def _mean(row: Row, look: Look) -> Dot:
    value = 100 * row["efficiency"]
    dot = mean_dot(row, row["ranks"] * look.mean, value, f"{value:.1f} % of ideal")
    limits = (row["efficiency_low"], row["efficiency_high"])
    return with_limits(dot, *(None if limit is None else 100 * limit for limit in limits))


def _runs(drawing: Drawing, look: Look) -> list[Dot]:
    points = {point_of(row): row for row in drawing.own(look)}
    dots = []
    for run in drawing.own_runs(look):
        point = points[point_of(run)]
        column = RATES[point["basis"]][0]
        whole = point["efficiency"] and usable(point, column)
        if run["state"] == OK and whole and usable(run, column):
            ratio = run[column] / point[column]
            rate = ratio if point["basis"].endswith("throughput") else 1 / ratio
            value = 100 * point["efficiency"] * rate
            dots.append(run_dot(run, run["ranks"] * look.runs, value, f"{value:.1f} % of ideal"))
    return dots


def _known(row: Row) -> bool:
    return bool(row["efficiency"] and row["ranks"])
