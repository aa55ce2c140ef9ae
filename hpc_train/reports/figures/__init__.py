"""Tables of a study and its laws -> figures, each with the numbers that it shows.

Here: one module for each figure, and what they share.
Not here: the numbers themselves (`scaling`), images as files (`pipeline.write_report`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from hpc_train.reports.figures.by_size import (
    draw_cost,
    draw_efficiencies,
    draw_karp_flatt,
    draw_scaling,
)
from hpc_train.reports.figures.by_step import draw_nodes, draw_step_times, draw_time_split
from hpc_train.reports.figures.canvas import Canvas, font_size
from hpc_train.reports.figures.fits import draw_fits
from hpc_train.reports.figures.images import STYLE, finished
from hpc_train.reports.figures.plot_data import Measured, PlotData, plot_data_of
from hpc_train.reports.report import Figure
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.report_options import SCREEN, Paper

MAIN = "scaling"
# What stands on axes without a measured value.
_NO_VALUES = ("no result", "ideal", "gate")
# Each returns None if there is nothing to draw; the most important first.
FIGURES: dict[str, Callable[[PlotData], Canvas | None]] = {
    MAIN: draw_scaling,
    "efficiency": draw_efficiencies,
    "step-times": draw_step_times,
    "karp-flatt": draw_karp_flatt,
    "fits": draw_fits,
    "time-split": draw_time_split,
    "nodes": draw_nodes,
    "cost": draw_cost,
}


def figures(
    study: ExpectedStudy,
    measured: Measured,
    kinds: Sequence[str] = ("svg", "png"),
    names: Sequence[str] = tuple(FIGURES),
    paper: Paper = SCREEN,
) -> tuple[Figure, ...]:
    """Return the figures `names` for which there are data, the most important first.

    `kinds` of images: svg, png (150 dpi), pdf, and inline (an SVG for a page). The same tables give
    the same bytes.
    """
    plot = plot_data_of(study, measured, paper)
    draws = {name: partial(FIGURES[name], plot) for name in names}
    return draw_all(draws, kinds, paper, plot.unit.key)


def draw_all(
    draws: Mapping[str, Callable[[], Canvas | None]], kinds: Sequence[str], paper: Paper, unit: str
) -> tuple[Figure, ...]:
    """Return the figures of these names that show a value; `unit` is the key of their sizes."""
    import matplotlib as mpl

    style: Any = {**mpl.rcParamsDefault, **STYLE, "font.size": font_size(paper)}
    with mpl.rc_context(style), warnings.catch_warnings():
        # Characters that the font lacks are boxes in an image, and text in a page.
        warnings.filterwarnings("ignore", "Glyph ", UserWarning)
        made = ((name, draw()) for name, draw in draws.items())
        return tuple(
            finished(name, one, kinds, unit)
            for name, one in made
            if one is not None and any(row.get("drawn") not in _NO_VALUES for row in one.rows)
        )
