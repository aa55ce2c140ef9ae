"""Run and point tables -> one figure: throughput and speedup against the number of ranks."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

from hpc_train.model.measurement import ExpectedStudy
from hpc_train.model.report import Figure
from hpc_train.reports.legend import draw_legend, heading_lines
from hpc_train.reports.measured import Measured
from hpc_train.reports.panels import Drawing, draw_rates, draw_speedup
from hpc_train.reports.rows import plain_rows
from hpc_train.reports.words import speedup_word

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Canvas

DPI = 150
# Inches.
WIDE, NARROW, HEIGHT = 9.6, 5.4, 5.0
MARGINS = {"w_pad": 0.1, "h_pad": 0.06, "wspace": 0.03}
# Without these matplotlib writes random ids and the date, so that no two SVGs are alike.
STYLE = {
    "svg.hashsalt": "hpctrain",
    "svg.fonttype": "path",
    # A series may be named after a value with a $ in it.
    "text.parse_math": False,
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.9",
    "axes.axisbelow": True,
}


def figures(study: ExpectedStudy, measured: Measured) -> tuple[Figure, ...]:
    """Return the figures that the measurements allow, the most important first."""
    return (scaling_figure(study, measured.runs, measured.points),)


def scaling_figure(
    study: ExpectedStudy, runs_frame: pd.DataFrame, points_frame: pd.DataFrame
) -> Figure:
    """Return the study's figure as PNG (150 dpi) and SVG; the same tables give the same bytes.

    Left: throughput [samples/s] (or 1/time, where there is none), every run a point, the mean a
    line, the ideal from each baseline. Right, where there is more than a baseline: speedup with
    intervals against the ideal. Points without any ok run are hollow on the axis and never joined.
    """
    import matplotlib as mpl

    points = plain_rows(points_frame)
    word = speedup_word(points)
    drawing = Drawing(plain_rows(runs_frame), points, study.gates.efficiency, word)
    style: Any = {**mpl.rcParamsDefault, **STYLE}
    with mpl.rc_context(style):
        canvas = _canvas(study.name, drawing)
        images = {kind: _image(canvas, kind) for kind in ("png", "svg")}
    caption = f"{study.name}: throughput and {word} against the number of ranks"
    return Figure(name=_stem(study.name), caption=caption, images=images)


def _canvas(name: str, drawing: Drawing) -> Canvas:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    compared = any(row["speedup"] and not row["is_baseline"] for row in drawing.points)
    width = WIDE if compared else NARROW
    canvas = Canvas(figsize=(width, HEIGHT), layout="constrained")
    FigureCanvasAgg(canvas)
    canvas.get_layout_engine().set(**MARGINS)  # type: ignore[union-attr]
    panels = canvas.subplots(1, 2 if compared else 1, squeeze=False)[0]
    left_out = draw_rates(panels[0], drawing)
    if compared:
        draw_speedup(panels[1], drawing)
    canvas.suptitle(heading_lines(name, drawing, left_out), fontsize=11, linespacing=1.4)
    draw_legend(canvas, drawing, width)
    return canvas


def _image(canvas: Canvas, kind: str) -> bytes:
    out = io.BytesIO()
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    canvas.savefig(out, format=kind, dpi=DPI, metadata=metadata)
    return out.getvalue()


def _stem(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "scaling"
