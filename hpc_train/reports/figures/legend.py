"""Series and limits -> the legend below the panels, in rows, and the title above them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hpc_train.reports.figures.drawing import Drawing
from hpc_train.reports.figures.marks import DOTTED, GATE, GREY
from hpc_train.reports.formats.plain import one_line
from hpc_train.reports.numbers import whole
from hpc_train.reports.tables import OK
from hpc_train.reports.words import ALONE, counted, series_heading, short_series

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure as Canvas

Row = Mapping[str, Any]
Entry = tuple["Artist", str]
LABEL_WIDTH = 60
# Longer names are shortened to their first and last characters.
LONGEST = 160
WITH_INTERVAL = ("speedup", "samples_per_second")
# Width in inches of a character and of a line sample, at the font size of the figure.
CHARACTER, SAMPLE = 0.075, 0.6
TITLE_CHARACTER = 0.08
# Rows that fit the canvas, and height in inches of each further one.
ROWS, ROW = 3, 0.19


def draw_legend(
    canvas: Canvas, drawing: Drawing, more: Sequence[Entry], *, series: bool = True
) -> None:
    """Draw the names of the series in rows, then the reference lines, ideal last."""
    heading = series_heading(drawing.points) if series else ""
    entries = [*(_series(drawing, heading) if series else ()), *more]
    if not entries:
        return
    columns = _columns([label for _, label in entries], canvas.get_figwidth())
    lines = [
        max(label.count("\n") + 1 for _, label in entries[i : i + columns])
        for i in range(0, len(entries), columns)
    ]
    canvas.set_figheight(canvas.get_figheight() + ROW * max(0, sum(lines) - ROWS))
    # Matplotlib fills columns; readers read rows.
    in_rows = [entries[i] for c in range(columns) for i in range(c, len(entries), columns)]
    canvas.legend(
        [handle for handle, _ in in_rows], [label for _, label in in_rows],
        loc="outside lower center", ncols=columns, frameon=False, title=heading or None,
    )  # fmt: skip


def _columns(labels: Sequence[str], width: float) -> int:
    """Return the largest number of columns that fit `width` inches."""
    widths = [SAMPLE + CHARACTER * max(map(len, label.split("\n"))) for label in labels]
    for columns in range(len(labels), 1, -1):
        if sum(max(widths[c::columns]) for c in range(columns)) <= width:
            return columns
    return 1


def heading_lines(drawing: Drawing, left_out: int = 0, *, runs: bool = True) -> str:
    """Return the figure's title: the study, its regime, n and the intervals.

    `left_out` points could not be drawn; `runs` says whether the figure draws each run.
    """
    regime = drawing.points[0]["regime"] if drawing.points else "unknown"
    parts = [f"{regime} scaling"] if regime != "unknown" else []
    parts += [_replicates(drawing.points)]
    if any(row[f"{name}_low"] is not None for row in drawing.points for name in WITH_INTERVAL):
        parts.append(f"{drawing.points[0]['confidence'] * 100:g} % intervals")
    else:
        parts.append("no intervals")
    if left_out:
        parts.append(f"{counted(left_out, 'point')} not drawn")
    shown = sum(row["state"] == OK for row in drawing.runs)
    fewer = runs and drawing.all_runs > shown
    more = [f"{shown:,} of {drawing.all_runs:,} runs drawn"] if fewer else []
    return titled(drawing, parts, [*series_left_out(drawing), *more])


def series_left_out(drawing: Drawing) -> list[str]:
    """Return a text on the series that are drawn, if some are not."""
    shown = len(drawing.looks)
    return [f"first {shown} of {drawing.all_series} series"] if drawing.all_series > shown else []


def titled(drawing: Drawing, *lines: Sequence[str]) -> str:
    """Return the study's name, and below it lines of parts."""
    below = [", ".join(parts) for parts in lines if parts]
    return "\n".join([one_line(drawing.study.name), *below])


def draw_title(canvas: Canvas, text: str) -> None:
    """Write the study's name and the lines below it, not wider than the canvas."""
    width = int(canvas.get_figwidth() / TITLE_CHARACTER)
    name, *lines = text.split("\n")
    name = name if len(name) <= width else f"{name[: width - 1]}…"
    wrapped = [textwrap.fill(line, width) for line in lines]
    canvas.suptitle("\n".join([name, *wrapped]), fontsize=11, linespacing=1.4)


def _replicates(points: Sequence[Row]) -> str:
    counts = sorted({row["n_ok"] for row in points if row["n_ok"]})
    if len(counts) <= 1:
        return f"{counted(counts[0] if counts else 0, 'run')} a point"
    return f"{whole(counts[0])} to {whole(counts[-1])} runs a point"


def series_name(series: str, heading: str = "") -> str:
    """Return the name of a series on one line, shortened in the middle if it is very long."""
    name = one_line("measured" if series == ALONE else short_series(series, heading))
    half = LONGEST // 2
    return name if len(name) <= LONGEST else f"{name[:half]} … {name[-half:]}"


def _series(drawing: Drawing, heading: str) -> list[Entry]:
    from matplotlib.lines import Line2D

    entries: list[Entry] = []
    for look in drawing.looks:
        sample = Line2D(
            [], [], color=look.colour, marker=look.marker, ls=look.dashes, lw=1.4, mec="white",
            mew=0.6, ms=look.marker_points,
        )  # fmt: skip
        entries.append((sample, textwrap.fill(series_name(look.series, heading), LABEL_WIDTH)))
    return entries


def hollow_entry(drawing: Drawing, *, runs: bool = False) -> list[Entry]:
    """Return the entries for hollow markers, if there are any; `runs`: also for small ones."""
    from matplotlib.lines import Line2D

    sized = [row for row in drawing.points if row["ranks"]]
    kinds = [(7, "hollow: no run with a result", any(not row["n_ok"] for row in sized))]
    fewer = any(row["n_ok"] and row["not_ok"] for row in sized)
    kinds += [(4, "small, hollow: some runs without", runs and fewer)]
    return [
        (Line2D([], [], ls="none", marker="o", mfc="none", mec=GREY, mew=1.4, ms=size), words)
        for size, words, there in kinds
        if there
    ]


def ideal_entry() -> Entry:
    """Return the entry for the dotted line."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=GREY, lw=1.2, ls=DOTTED), "ideal"


def gate_entry(drawing: Drawing) -> list[Entry]:
    """Return the entry for the gate, if there is one."""
    from matplotlib.lines import Line2D

    gate = drawing.study.gates.efficiency
    if gate is None:
        return []
    return [(Line2D([], [], color=GATE, lw=1.4), f"gate: {gate * 100:g} % of ideal")]


def limits(drawing: Drawing) -> list[Entry]:
    """Return the entries that follow the series in the figure of rates and speedup."""
    entries = hollow_entry(drawing, runs=True)
    if any(row["ideal"] and not row["is_baseline"] for row in drawing.points):
        entries += [*gate_entry(drawing), ideal_entry()]
    return entries
