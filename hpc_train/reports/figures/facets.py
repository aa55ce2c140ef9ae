"""Series -> small panels side by side, one for each."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from hpc_train.reports.figures.drawing import Drawing
from hpc_train.reports.figures.legend import series_name
from hpc_train.reports.figures.looks import Look
from hpc_train.reports.figures.sheet import NARROW, WIDE, Sheet, opened
from hpc_train.reports.words import ALONE, series_heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 6
IN_A_ROW = 3
ONE_ROW, TWO_ROWS = 4.4, 7.4
# Characters of a panel's title, by the number of panels in a row.
WIDTHS = {1: 70, 2: 56, 3: 36}


def faceted(caption: str, looks: list[Look], drawing: Drawing) -> tuple[Sheet, list[Axes]]:
    """Return a sheet with a panel for each of the first series, with its name above it."""
    shown = looks[:MOST]
    columns = min(len(shown), IN_A_ROW)
    rows = -(-len(shown) // columns)
    sheet = opened(caption, NARROW if columns == 1 else WIDE, ONE_ROW if rows == 1 else TWO_ROWS)
    grid = sheet.canvas.subplots(rows, columns, squeeze=False, sharex=False, sharey=True)
    panels: list[Axes] = list(grid.flat)
    for spare in panels[len(shown) :]:
        spare.remove()
    heading = series_heading(drawing.points)
    for i, (axes, look) in enumerate(zip(panels, shown, strict=False)):
        axes.yaxis.label.set_visible(i % columns == 0)
        if look.series != ALONE:
            name = series_name(look.series, heading)
            axes.set_title(
                textwrap.fill(
                    textwrap.shorten(name, 2 * WIDTHS[columns], placeholder="…"), WIDTHS[columns]
                )
            )
    return sheet, panels[: len(shown)]


def shown_in(drawing: Drawing, looks: list[Look]) -> Drawing:
    """Return the drawing with only the series that have a panel."""
    return drawing._replace(looks=looks[:MOST])
