"""Run and point tables -> one figure: throughput and speedup against the number of ranks."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hpc_train.model.measurement import ExpectedStudy
from hpc_train.model.report import Figure
from hpc_train.reports.panels import draw_speedup, draw_throughput
from hpc_train.reports.rows import plain_rows
from hpc_train.reports.summary import speedup_word

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Canvas

Row = Mapping[str, Any]
DPI = 150
# Without these matplotlib writes random ids and the date, so that no two SVGs are alike.
STYLE = {
    "svg.hashsalt": "hpctrain",
    "svg.fonttype": "path",
    # A series may be named after a value with a $ in it.
    "text.parse_math": False,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.9",
    "axes.axisbelow": True,
}


class Drawing(NamedTuple):
    """The rows of one study, as the panels need them."""

    runs: Sequence[Row]
    points: Sequence[Row]
    gate: float | None


def scaling_figure(
    study: ExpectedStudy, runs_frame: pd.DataFrame, points_frame: pd.DataFrame
) -> Figure:
    """Return the study's figure as PNG (150 dpi) and SVG; the same tables give the same bytes.

    Left: throughput [samples/s] (or 1/time, where there is none), every run a point, the mean a
    line, the ideal from each baseline. Right: speedup with intervals against the ideal. Points
    without any ok run are hollow on the axis and never joined.
    """
    import matplotlib as mpl

    drawing = Drawing(plain_rows(runs_frame), plain_rows(points_frame), study.gates.efficiency)
    word = speedup_word(drawing.points)
    style: Any = {**mpl.rcParamsDefault, **STYLE}
    with mpl.rc_context(style):
        canvas = _canvas(drawing, word)
        images = {kind: _image(canvas, kind) for kind in ("png", "svg")}
    caption = f"{study.name}: throughput and {word} against the number of ranks"
    return Figure(name=_stem(study.name), caption=caption, images=images)


def _canvas(drawing: Drawing, word: str) -> Canvas:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(9.6, 4.6), layout="constrained")
    FigureCanvasAgg(canvas)
    left, right = canvas.subplots(1, 2)
    draw_throughput(left, drawing.runs, drawing.points)
    draw_speedup(right, drawing.points, drawing.gate, word)
    handles: dict[str, Any] = {}
    for axes in (left, right):
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    canvas.legend(
        list(handles.values()), list(handles), loc="outside lower center", ncols=4, frameon=False
    )
    return canvas


def _image(canvas: Canvas, kind: str) -> bytes:
    out = io.BytesIO()
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    canvas.savefig(out, format=kind, dpi=DPI, metadata=metadata)
    return out.getvalue()


def _stem(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "scaling"
