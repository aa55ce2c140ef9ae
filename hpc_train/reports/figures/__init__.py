"""Tables of a study and its laws -> figures, each with the numbers that it shows."""

import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from hpc_train.reports.figures.canvas import (
    Canvas,
    Measured,
    PlotData,
    font_size,
    plot_data_of,
    thin_labels,
)
from hpc_train.reports.figures.draw import (
    draw_efficiencies,
    draw_fits,
    draw_nodes,
    draw_scaling,
    draw_step_times,
    draw_time_split,
)
from hpc_train.reports.report import SCREEN, Column, Figure, Paper, ReportTable, rounded
from hpc_train.runs.expected_runs import ExpectedStudy

MAIN = "scaling"
# What stands on axes without a measured value.
_NO_VALUES = ("no result", "ideal", "gate")
# Each returns None if there is nothing to draw; the most important first.
FIGURES: dict[str, Callable[[PlotData], Canvas | None]] = {
    MAIN: draw_scaling,
    "efficiency": draw_efficiencies,
    "step-times": draw_step_times,
    "fits": draw_fits,
    "time-split": draw_time_split,
    "nodes": draw_nodes,
}


def figures(
    study: ExpectedStudy,
    measured: Measured,
    kinds: Sequence[str] = ("svg", "png"),
    names: Sequence[str] = tuple(FIGURES),
    paper: Paper = SCREEN,
) -> tuple[Figure, ...]:
    """Return the figures `names` for which there are data, the most important first.

    `kinds` of images: svg, png (150 dpi) and pdf. The same tables give the same bytes.
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
        # Characters that the font lacks are boxes.
        warnings.filterwarnings("ignore", "Glyph ", UserWarning)
        made = ((name, draw()) for name, draw in draws.items())
        return tuple(
            finished(name, one, kinds, unit)
            for name, one in made
            if one is not None and any(row.get("drawn") not in _NO_VALUES for row in one.rows)
        )


DPI = 150
STYLE = {
    # The name of a series may contain a $.
    "text.parse_math": False,
    # Type 42: text in a PDF stays text.
    "pdf.fonttype": 42,
    "axes.titlesize": "medium",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.9",
    "axes.axisbelow": True,
    "hatch.linewidth": 0.6,
}
# These contain the date; without them equal input gives equal bytes.
METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def finished(name: str, canvas: Canvas, kinds: Sequence[str], unit: str) -> Figure:
    """Return the figure with images of the given kinds.

    `unit` is the key of the sizes in its numbers: `gpus`.
    """
    import matplotlib as mpl

    # Once for all formats: it takes longer than plot.
    canvas.figure.draw_without_rendering()
    canvas.figure.set_layout_engine("none")
    for axes in canvas.figure.axes:
        thin_labels(axes)
    images = {}
    # Matplotlib's ids are random without a salt.
    with mpl.rc_context({"svg.hashsalt": f"hpctrain-{name}"}):
        for kind in kinds:
            out = io.BytesIO()
            canvas.figure.savefig(out, format=kind, dpi=DPI, metadata=METADATA[kind])
            images[kind] = out.getvalue()
    return Figure(name=name, caption=canvas.caption, images=images, data=_table(canvas, unit))


def _table(canvas: Canvas, unit: str) -> ReportTable:
    found = [{unit if key == "size" else key: row[key] for key in row} for row in canvas.rows]
    keys = list(dict.fromkeys(key for row in found for key in row))
    cells = [[rounded(row.get(key)) for key in keys] for row in found]
    return ReportTable(
        title=canvas.caption,
        columns=tuple(Column(key=key, heading=key.replace("_", " ")) for key in keys),
        rows=tuple(tuple("" if value is None else f"{value}" for value in row) for row in cells),
        records=tuple(dict(zip(keys, row, strict=True)) for row in cells),
    )
