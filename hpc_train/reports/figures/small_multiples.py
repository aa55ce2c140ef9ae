"""Series -> panels: one for all of them or, if they are many, one for each."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from hpc_train.jobs.study import ALONE
from hpc_train.reports.figures.canvas import NARROW, WIDE, Canvas, opened, panels
from hpc_train.reports.figures.end_labels import direct, draw_end_labels
from hpc_train.reports.figures.plot_data import PlotData
from hpc_train.reports.figures.series_styles import SMALL_MULTIPLES, Style
from hpc_train.reports.figures.titles_and_legend import LegendEntry, series_name
from hpc_train.reports.point_and_series_names import series_heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 10
# Inches: the height of a single row on a screen, and of title and legend of others.
ONE_ROW, AROUND = 4.4, 1.6
# Height over width of a panel; the width in inches that it needs, and of a character of its title.
UPRIGHT, LEAST_WIDTH, CHARACTER = 1.1, 1.05, 0.085
GHOST = "0.8"


def many(plot: PlotData) -> bool:
    """Whether there are too many series for one panel."""
    return len(plot.styles) >= SMALL_MULTIPLES


def split(caption: str, plot: PlotData) -> tuple[Canvas, list[tuple[Axes, PlotData]]]:
    """Return a canvas with one panel for all series or, if they are many, one for each."""
    if not many(plot):
        canvas = opened(caption, plot.paper)
        return canvas, [(panels(canvas, 1)[0], plot)]
    canvas, axes = faceted(caption, list(plot.styles), plot)
    own = [plot.only(style) for style in plot.styles]
    return canvas, list(zip(axes, own, strict=True))


def faceted(caption: str, styles: list[Style], plot: PlotData) -> tuple[Canvas, list[Axes]]:
    """Return a canvas with a panel for each of the first series, with its name above it."""
    shown = styles[:MOST]
    width = plot.paper.width or (NARROW if len(shown) == 1 else WIDE)
    columns = _columns(len(shown), width)
    rows = -(-len(shown) // columns)
    canvas = opened(caption, plot.paper, width)
    panel = width / columns
    least = ONE_ROW if rows == 1 and columns <= 3 and width >= NARROW else 0.0
    canvas.figure.set_figheight(
        max(least, AROUND * min(1.0, width / WIDE) + rows * UPRIGHT * panel)
    )
    grid = canvas.figure.subplots(rows, columns, squeeze=False, sharex=False, sharey=True)
    every: list[Axes] = list(grid.flat)
    for spare in every[len(shown) :]:
        spare.remove()
    heading, room = series_heading(plot.points), int(width / columns / CHARACTER)
    for i, (axes, style) in enumerate(zip(every, shown, strict=False)):
        # Of three rows or more, the label of the middle one is enough, and the others collide.
        row = i // columns
        axes.yaxis.label.set_visible(i % columns == 0 and (rows <= 2 or row == (rows - 1) // 2))
        axes.xaxis.label.set_visible(i + columns >= len(shown))
        if style.series != ALONE:
            name = textwrap.shorten(series_name(style.series, heading), 2 * room, placeholder="…")
            axes.set_title(textwrap.fill(name, room), color=style.colour)
    return canvas, every[: len(shown)]


def _columns(count: int, width: float) -> int:
    """Return the number of panels in a row: rows are as equal as possible."""
    most = max(1, min(5, int(width / LEAST_WIDTH)))
    if count <= 3 <= most:
        return count
    rows = -(-count // most)
    return -(-count // rows)


def ghost_entry(plot: PlotData) -> list[LegendEntry]:
    """Return the entry for the grey lines of small multiples."""
    from matplotlib.lines import Line2D

    return [(Line2D([], [], color=GHOST, lw=1), "the other series")] if many(plot) else []


def in_legend(canvas: Canvas, plot: PlotData) -> bool:
    """Name the series at the ends of their lines if possible; else, whether the legend must."""
    if many(plot):
        _ghosts(canvas)
        return False
    if direct(plot):
        draw_end_labels(canvas, plot)
        return False
    return True


def _ghosts(canvas: Canvas) -> None:
    """Draw the lines of all other series in grey on each panel, below the ideal."""
    # Ten lines of a panel on a column of paper would be one area.
    width = 0.35 if canvas.figure.get_figwidth() < NARROW else 0.7
    for axes in {line.axes: None for line in canvas.lines}:
        for line in canvas.lines:
            if line.axes is not axes:
                axes.plot(line.x, line.y, color=GHOST, lw=width, zorder=0.9)


def shown_in(plot: PlotData, styles: list[Style]) -> PlotData:
    """Return the plot with only those series that have a panel."""
    return plot._replace(styles=styles[:MOST])
