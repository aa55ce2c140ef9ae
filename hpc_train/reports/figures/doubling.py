"""Panel: speedup from half the size against the number of ranks, with its gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hpc_train.reports.figures.drawing import Drawing
from hpc_train.reports.figures.hollow import draw_hollow
from hpc_train.reports.figures.looks import Look
from hpc_train.reports.figures.marks import (
    DOTTED,
    GATE,
    GREY,
    Dot,
    draw_bars,
    draw_means,
    mean_dot,
    with_limits,
)
from hpc_train.reports.figures.scales import plain_axis, size_axis
from hpc_train.reports.figures.sheet import Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = Mapping[str, Any]
IDEAL = 2.0


def wanted(drawing: Drawing) -> bool:
    """Whether there is a gate on doubling, and a point with half the ranks of another."""
    return drawing.study.gates.doubling is not None and any(map(_known, drawing.points))


def draw(sheet: Sheet, axes: Axes, drawing: Drawing) -> None:
    """Draw S(p)/S(p/2) with its interval, the ideal 2 and the gate."""
    gate = drawing.study.gates.doubling
    axes.set(xlabel="ranks", ylabel="speedup from half the size")
    values = [IDEAL]
    for look in drawing.looks:
        means = [_mean(row, look) for row in drawing.own(look) if _known(row)]
        draw_means(sheet, axes, means, look, drawing.gaps(look))
        values += [dot.y for dot in means] + draw_bars(axes, means, look)
    axes.axhline(IDEAL, color=GREY, lw=1.2, ls=DOTTED, zorder=1)
    if gate is not None:
        axes.axhline(gate, color=GATE, lw=1.4, zorder=1)
        axes.set_title(f"Speedup from half the size, gate {gate:g}")
        sheet.rows.append({"quantity": axes.get_ylabel(), "drawn": "gate", "value": gate})
    draw_hollow(sheet, axes, drawing)
    size_axis(axes, drawing.place)
    plain_axis(axes, 0.0, max(values))


def _known(row: Row) -> bool:
    return row.get("doubling") is not None and bool(row["ranks"])


def _mean(row: Row, look: Look) -> Dot:
    value = IDEAL * row["doubling"]
    dot = mean_dot(row, row["ranks"] * look.mean, value, f"{value:.3g} times half the size")
    limits = (row.get("doubling_low"), row.get("doubling_high"))
    return with_limits(dot, *(None if limit is None else IDEAL * limit for limit in limits))
