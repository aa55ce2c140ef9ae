"""The title and the legend of a figure, and the titles of its panels."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hpc_train.jobs.study import ALONE
from hpc_train.reports.figures.canvas import FONT, Canvas, font_size
from hpc_train.reports.figures.markers import DOTTED, FLAGGED, GATE, GREY
from hpc_train.reports.figures.plot_data import PlotData, is_flagged
from hpc_train.reports.point_and_series_names import counted, series_heading, short_series
from hpc_train.reports.study_tables import OK
from hpc_train.reports.value_format import Row, one_line, whole

if TYPE_CHECKING:
    from matplotlib.artist import Artist

LegendEntry = tuple["Artist", str]
LABEL_WIDTH = 60
# Longer names are shortened to their first and last characters.
LONGEST = 160
WITH_INTERVAL = ("speedup", "samples_per_second")
# Width in inches of a character and of a line sample, at the font size of the figure.
CHARACTER, SAMPLE = 0.075, 0.6
TITLE_CHARACTER = 0.08
# Rows for which the figure has space, and inches that each further row adds.
ROWS, ROW = 3, 0.19


def _sample(**look: Any) -> Artist:
    """Return what a legend shows of a line or a mark."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **look)


def draw_legend(
    canvas: Canvas, plot: PlotData, more: Sequence[LegendEntry], *, series: bool = True
) -> None:
    """Draw the names of the series in rows, then the reference lines, ideal last.

    Without `series`, their names are at the lines or above the panels.
    """
    figure = canvas.figure
    named = series and len(plot.styles) > 1
    heading = series_heading(plot.points) if named else ""
    entries = [*(_series(plot, heading) if named else ()), *more]
    if not entries:
        return
    scale = FONT / font_size(plot.paper)
    columns = _columns([label for _, label in entries], figure.get_figwidth() * scale)
    lines = [
        max(label.count("\n") + 1 for _, label in entries[i : i + columns])
        for i in range(0, len(entries), columns)
    ]
    figure.set_figheight(figure.get_figheight() + ROW * max(0, sum(lines) - ROWS))
    # Matplotlib fills columns; readers read rows.
    in_rows = [entries[i] for c in range(columns) for i in range(c, len(entries), columns)]
    figure.legend(
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


def heading_lines(plot: PlotData, left_out: int = 0, *, runs: bool = True) -> str:
    """Return the figure's title: the study, its regime, n and the intervals.

    `left_out` points could not be drawn; `runs` says whether the figure draws each run.
    """
    regime = plot.points[0]["regime"] if plot.points else "unknown"
    parts = [f"{regime} scaling"] if regime != "unknown" else []
    parts += dict.fromkeys(row["assumption"] for row in plot.points if row["assumption"])
    parts += [_replicates(plot.points)]
    if any(row[f"{name}_low"] is not None for row in plot.points for name in WITH_INTERVAL):
        level = f"{plot.points[0]['confidence'] * 100:g} %"
        parts.append(f"{plot.study.bands} {level} intervals")
    else:
        parts.append("no intervals")
    if left_out:
        parts.append(f"{counted(left_out, 'point')} not drawn")
    shown = sum(row["state"] == OK for row in plot.runs)
    fewer = runs and plot.all_runs > shown
    more = [f"{shown:,} of {plot.all_runs:,} runs drawn"] if fewer else []
    return titled(plot, parts, [*series_left_out(plot), *more])


def series_left_out(plot: PlotData) -> list[str]:
    """Return a text on the series that are drawn, if some are not."""
    shown = len(plot.styles)
    return [f"first {shown} of {plot.all_series} series"] if plot.all_series > shown else []


def titled(plot: PlotData, *lines: Sequence[str]) -> str:
    """Return the study's name, and below it lines of parts."""
    below = [", ".join(parts) for parts in lines if parts]
    return "\n".join([one_line(plot.study.name), *below])


def draw_title(canvas: Canvas, text: str) -> None:
    """Write the title lines, no wider than the figure; nothing if the paper has no titles."""
    if not canvas.paper.title:
        return
    size = font_size(canvas.paper)
    width = int(canvas.figure.get_figwidth() / TITLE_CHARACTER * FONT / size)
    name, *lines = text.split("\n")
    name = name if len(name) <= width else f"{name[: width - 1]}…"
    wrapped = [textwrap.fill(line, width) for line in lines]
    canvas.figure.suptitle("\n".join([name, *wrapped]), fontsize=size + 2, linespacing=1.4)


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


def _series(plot: PlotData, heading: str) -> list[LegendEntry]:
    entries: list[LegendEntry] = []
    for style in plot.styles:
        sample = _sample(
            color=style.colour, marker=style.marker, ls=style.dashes, lw=1.4, mec="white",
            mew=0.6, ms=style.marker_points,
        )  # fmt: skip
        entries.append((sample, textwrap.fill(series_name(style.series, heading), LABEL_WIDTH)))
    return entries


def hollow_entry(plot: PlotData, *, runs: bool = False) -> list[LegendEntry]:
    """Return the entries for hollow markers, if there are any; `runs`: also for small ones."""
    sized = [row for row in plot.points if row["size"]]
    kinds = [(7, "hollow: no run with a result", any(not row["n_ok"] for row in sized))]
    fewer = any(row["n_ok"] and row["not_ok"] for row in sized)
    kinds += [(4, "small, hollow: some runs without", runs and fewer)]
    return [
        (_sample(ls="none", marker="o", mfc="none", mec=GREY, mew=1.4, ms=size), words)
        for size, words, there in kinds
        if there
    ]


def ideal_entry() -> LegendEntry:
    """Return the entry for the dotted line."""
    return _sample(color=GREY, lw=1.2, ls=DOTTED), "ideal"


def gate_entry(plot: PlotData) -> list[LegendEntry]:
    """Return the entry for the gate, if there is one."""
    gate = plot.study.gates.efficiency
    if gate is None:
        return []
    return [(_sample(color=GATE, lw=1.4), f"gate: {gate * 100:g} % of ideal")]


def limits(plot: PlotData) -> list[LegendEntry]:
    """Return the entries that follow the series in the figure of rates and speedup."""
    codes = dict.fromkeys(
        flag.code.value for row in plot.points if is_flagged(row) for flag in row["flags"]
    )
    ring = _sample(ls="none", marker="o", mfc="none", mec=FLAGGED, mew=1.2, ms=9)
    entries = [
        *hollow_entry(plot, runs=True),
        *([(ring, f"flagged: {', '.join(codes)}")] if codes else []),
    ]
    if any(row["ideal"] and not row["is_baseline"] for row in plot.points):
        entries += [*gate_entry(plot), ideal_entry()]
    return entries
