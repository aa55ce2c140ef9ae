"""Figure: the serial fraction after Karp and Flatt against the number of ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpc_train.reports.figures.drawing import Drawing
from hpc_train.reports.figures.hollow import draw_hollow
from hpc_train.reports.figures.legend import draw_legend, draw_title, heading_lines, hollow_entry
from hpc_train.reports.figures.looks import Look
from hpc_train.reports.figures.marks import (
    GREY,
    Dot,
    draw_bars,
    draw_means,
    mean_dot,
    with_limits,
)
from hpc_train.reports.figures.scales import plain_axis, size_axis
from hpc_train.reports.figures.sheet import Sheet, opened

Row = Mapping[str, Any]
# Space below the lowest value for hollow markers, as a fraction of the height.
ROOM = 0.12


def draw(drawing: Drawing) -> Sheet | None:
    """Draw e = (1/S - 1/q)/(1 - 1/q) with its interval (Karp and Flatt, CACM 1990).

    A constant e is a serial part, a rising e is overhead; at small sizes e is mostly noise.
    """
    if not any(_known(row) for row in drawing.points):
        return None
    sheet = opened(f"{drawing.study.name}: serial fraction after Karp and Flatt")
    axes = sheet.canvas.subplots()
    axes.set(xlabel="ranks", ylabel="serial fraction e [%]")
    values = [0.0]
    for look in drawing.looks:
        means = [_mean(row, look) for row in drawing.own(look) if _known(row)]
        draw_means(sheet, axes, means, look, drawing.gaps(look))
        values += [dot.y for dot in means] + draw_bars(axes, means, look)
    axes.axhline(0, color=GREY, lw=1, zorder=1)
    axes.set_title("Flat: a serial part; rising: overhead")
    hollow = draw_hollow(sheet, axes, drawing)
    size_axis(axes, drawing.place)
    low, high = min(values), max(values)
    plain_axis(axes, low - (high - low) * (ROOM if hollow or low < 0 else 0), max(high, 0.1))
    draw_title(sheet.canvas, heading_lines(drawing, runs=False))
    draw_legend(sheet.canvas, drawing, hollow_entry(drawing))
    return sheet


def _known(row: Row) -> bool:
    return row.get("karp_flatt") is not None and bool(row["ranks"])


def _mean(row: Row, look: Look) -> Dot:
    value = 100 * row["karp_flatt"]
    dot = mean_dot(row, row["ranks"] * look.mean, value, f"e = {value:.3g} %")
    limits = (row.get("karp_flatt_low"), row.get("karp_flatt_high"))
    return with_limits(dot, *(None if limit is None else 100 * limit for limit in limits))
