"""Series and limits -> the legend below the panels, in rows, and the title above them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hpc_train.reports.formats.plain import one_line
from hpc_train.reports.looks import looks
from hpc_train.reports.numbers import whole
from hpc_train.reports.panels import DOTTED, GATE, GREY, Drawing
from hpc_train.reports.words import ALONE, counted, series_heading, short_series

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D

Row = Mapping[str, Any]
# Series beyond this many are counted in the legend, not named.
NAMED = 21
LABEL_WIDTH = 60
WITH_INTERVAL = ("speedup", "samples_per_second")
# Inches that a character and the sample of a line take, at the font size of the figure.
CHARACTER, SAMPLE = 0.075, 0.6


def draw_legend(canvas: Canvas, drawing: Drawing, width: float) -> None:
    """Name the series from left to right in rows, then what they are compared with, ideal last."""
    heading = series_heading(drawing.points)
    entries = [*_series(drawing.points, heading), *_limits(drawing)]
    columns = _columns([label for _, label in entries], width)
    # Matplotlib fills columns; readers read rows.
    in_rows = [entries[i] for c in range(columns) for i in range(c, len(entries), columns)]
    canvas.legend(
        [handle for handle, _ in in_rows], [label for _, label in in_rows],
        loc="outside lower center", ncols=columns, frameon=False, title=heading or None,
    )  # fmt: skip


def _columns(labels: Sequence[str], width: float) -> int:
    """Return the most columns, each as wide as its longest label, that fit `width` inches."""
    widths = [SAMPLE + CHARACTER * max(map(len, label.split("\n"))) for label in labels]
    for columns in range(len(labels), 1, -1):
        if sum(max(widths[c::columns]) for c in range(columns)) <= width:
            return columns
    return 1


def heading_lines(name: str, drawing: Drawing, left_out: int) -> str:
    """Return the figure's title: the study, its regime, and what n and the intervals are."""
    regime = drawing.points[0]["regime"] if drawing.points else "unknown"
    parts = [f"{regime} scaling"] if regime != "unknown" else []
    parts += [_replicates(drawing.points)]
    if any(row[f"{name}_low"] is not None for row in drawing.points for name in WITH_INTERVAL):
        parts.append(f"{drawing.points[0]['confidence'] * 100:g} % intervals")
    else:
        parts.append("no intervals")
    if left_out:
        parts.append(f"{counted(left_out, 'point')} not drawn")
    title = textwrap.shorten(one_line(name), 90, placeholder=" …")
    return f"{title}\n{', '.join(parts)}"


def _replicates(points: Sequence[Row]) -> str:
    counts = sorted({row["n_ok"] for row in points if row["n_ok"]})
    if len(counts) <= 1:
        return f"{counted(counts[0] if counts else 0, 'run')} a point"
    return f"{whole(counts[0])} to {whole(counts[-1])} runs a point"


def _series(points: Sequence[Row], heading: str) -> list[tuple[Line2D, str]]:
    from matplotlib.lines import Line2D

    entries = []
    every = looks(points)
    for look in every[:NAMED]:
        sample = Line2D(
            [], [], color=look.colour, marker=look.marker, ls=look.dashes, lw=1.4, mec="white",
            mew=0.6, ms=look.marker_points,
        )  # fmt: skip
        name = "measured" if look.series == ALONE else short_series(look.series, heading)
        entries.append((sample, textwrap.fill(one_line(name), LABEL_WIDTH)))
    if len(every) > NAMED:
        entries.append((Line2D([], [], ls="none"), f"and {len(every) - NAMED} more series"))
    return entries


def _limits(drawing: Drawing) -> list[tuple[Line2D, str]]:
    from matplotlib.lines import Line2D

    entries = []
    if any(row["ranks"] and not row["n_ok"] for row in drawing.points):
        empty = Line2D([], [], ls="none", marker="o", mfc="none", mec=GREY, mew=1.4, ms=7)
        entries.append((empty, "hollow: no run with a result"))
    compared = any(row["ideal"] and not row["is_baseline"] for row in drawing.points)
    if compared and drawing.gate is not None:
        gate = Line2D([], [], color=GATE, lw=1.4)
        entries.append((gate, f"gate: {drawing.gate * 100:g} % of ideal"))
    if compared:
        entries.append((Line2D([], [], color=GREY, lw=1.2, ls=DOTTED), "ideal"))
    return entries
