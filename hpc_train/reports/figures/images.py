"""Canvas -> the bytes of a figure in each format, and its numbers as a table."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from hpc_train.model.report import Cell, Column, Figure, ReportTable
from hpc_train.reports.figures.canvas import Canvas
from hpc_train.reports.figures.inline_svg import inlined
from hpc_train.reports.number_format import rounded

DPI = 150
STYLE = {
    # The name of a series may contain a $.
    "text.parse_math": False,
    # Type 42: text in a PDF stays text.
    "pdf.fonttype": 42,
    "font.size": 9,
    "axes.titlesize": 10,
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


def finished(name: str, canvas: Canvas, kinds: Sequence[str]) -> Figure:
    """Return the figure with images of the given kinds; a page may contain several."""
    # Once for all formats: it takes longer than plot.
    canvas.figure.draw_without_rendering()
    canvas.figure.set_layout_engine("none")
    images = {kind: _image(name, canvas, kind) for kind in kinds}
    return Figure(name=name, caption=canvas.caption, images=images, data=_table(canvas))


def _image(name: str, canvas: Canvas, kind: str) -> bytes:
    import matplotlib as mpl

    out = io.BytesIO()
    form = "svg" if kind == "inline" else kind
    text = "none" if kind == "inline" else "path"
    # Matplotlib's ids are random without a salt.
    with mpl.rc_context({"svg.hashsalt": f"hpctrain-{name}", "svg.fonttype": text}):
        canvas.figure.savefig(out, format=form, dpi=DPI, metadata=METADATA[form])
    return inlined(out.getvalue(), name, canvas) if kind == "inline" else out.getvalue()


def _table(canvas: Canvas) -> ReportTable:
    keys = list(dict.fromkeys(key for row in canvas.rows for key in row))
    cells = [[rounded(row.get(key)) for key in keys] for row in canvas.rows]
    return ReportTable(
        title=canvas.caption,
        columns=tuple(Column(key=key, heading=key.replace("_", " ")) for key in keys),
        rows=tuple(
            tuple(Cell(text="" if value is None else f"{value}", value=value) for value in row)
            for row in cells
        ),
        records=tuple(dict(zip(keys, row, strict=True)) for row in cells),
    )
