"""Tables of a study and its laws -> figures, each with the numbers that it shows.

Here: one module for each figure, and what they share.
Not here: the numbers themselves (`scaling`), images as files (`pipeline.write_report`).
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from xml.etree import ElementTree as Xml

from hpc_train.reports.figures.by_size import (
    draw_cost,
    draw_efficiencies,
    draw_fits,
    draw_karp_flatt,
    draw_scaling,
)
from hpc_train.reports.figures.by_step import draw_nodes, draw_step_times, draw_time_split
from hpc_train.reports.figures.canvas import NARROW, Canvas, font_size, spread_labels, thin_labels
from hpc_train.reports.figures.plot_data import COLOURS, Measured, PlotData, plot_data_of
from hpc_train.reports.report import Column, Figure, ReportTable
from hpc_train.reports.words import one_line, rounded
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


# As matplotlib writes them; the page's style defines the variables for dark screens.
VARIABLES = {
    **{colour: f"--f-{i}" for i, colour in enumerate(COLOURS)},
    "#000000": "--f-ink", "#ffffff": "--f-paper", "#595959": "--f-grey", "#e5e5e5": "--f-grid",
    "#e6e6e6": "--f-grid", "#cccccc": "--f-ghost", "#ededed": "--f-beyond",
}  # fmt: skip
INK = "fill:var(--f-ink,#000)"
_COLOUR = re.compile(r"#[0-9a-f]{6}")


def _variable(found: re.Match[str]) -> str:
    name = VARIABLES.get(found[0])
    return f"var({name},{found[0]})" if name else found[0]


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
_SPACE = re.compile(r"^\{[^}]*\}")
_REFERENCE = re.compile(r"(url\(#|^#)")
# Properties that matplotlib sets in a stylesheet, which would apply to the whole page.
STROKES = "stroke-linejoin:round;stroke-linecap:butt"
DECIMALS = re.compile(r"(\d\.\d\d)\d+")


def finished(name: str, canvas: Canvas, kinds: Sequence[str], unit: str) -> Figure:
    """Return the figure with images of the given kinds; a page may contain several.

    `unit` is the key of the sizes in its numbers: `gpus`.
    """
    # Once for all formats: it takes longer than plot.
    canvas.figure.draw_without_rendering()
    canvas.figure.set_layout_engine("none")
    spread_labels(canvas)
    for axes in canvas.figure.axes:
        thin_labels(axes)
    images = {kind: _image(name, canvas, kind) for kind in kinds}
    return Figure(name=name, caption=canvas.caption, images=images, data=_table(canvas, unit))


def _image(name: str, canvas: Canvas, kind: str) -> bytes:
    import matplotlib as mpl

    out = io.BytesIO()
    form = "svg" if kind == "inline" else kind
    text = "none" if kind == "inline" else "path"
    # Matplotlib's ids are random without a salt.
    with mpl.rc_context({"svg.hashsalt": f"hpctrain-{name}", "svg.fonttype": text}):
        # On a page, the background and the shade of its edges are the page's.
        clear = kind == "inline"
        canvas.figure.savefig(out, format=form, dpi=DPI, metadata=METADATA[form], transparent=clear)
    return inlined(out.getvalue(), name, canvas) if kind == "inline" else out.getvalue()


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


def inlined(svg: bytes, name: str, canvas: Canvas) -> bytes:
    """Return the SVG as an element of a page that may contain several.

    Every id begins with the figure's name, there are no global styles or metadata, and `<title>`
    children describe the figure and each mark.
    """
    # Trusted input: matplotlib has just written it.
    root = Xml.fromstring(svg)  # noqa: S314
    for element in root.iter():
        element.tag = _SPACE.sub("", element.tag)
        plain = {_SPACE.sub("", key): value for key, value in element.attrib.items()}
        element.attrib.clear()
        element.attrib.update(plain)
        element.text, element.tail = (
            text if text and text.strip() else None for text in (element.text, element.tail)
        )
        if "style" in element.attrib:
            # Known colours are variables, with themselves as defaults.
            style = _COLOUR.sub(_variable, element.attrib["style"])
            element.set("style", style)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == "metadata" or child.find("style") is not None:
                parent.remove(child)
    groups = {element.get("id"): element for element in root.iter("g")}
    for group, titles in canvas.hovers.items():
        _add_titles(groups[group], titles)
    for element in root.iter():
        for key, value in element.attrib.items():
            element.set(
                key, f"{name}-{value}" if key == "id" else _REFERENCE.sub(rf"\1{name}-", value)
            )
    width = root.attrib.pop("width")
    root.attrib.pop("height")
    root.attrib.pop("version", None)
    root.attrib |= {
        "xmlns": "http://www.w3.org/2000/svg",
        "role": "img",
        "aria-labelledby": f"{name}-title",
        "class": "broad" if float(width.removesuffix("pt")) > 72 * NARROW else "",
        "style": f"width:100%;max-width:{width};height:auto;{INK};{STROKES}",
        # Only marks have tooltips; intervals and lines above them do not hide them.
        "pointer-events": "none",
    }
    title = Xml.Element("title", {"id": f"{name}-title"})
    title.text, title.tail = one_line(canvas.caption), "\n"
    root.insert(0, title)
    return Xml.tostring(root, encoding="unicode").encode()


def _add_titles(group: Xml.Element, titles: list[str]) -> None:
    """Give each mark its title, and move common styles to the group, which keeps pages small."""
    group.set("pointer-events", "all")
    hidden = {path for defs in group.iter("defs") for path in defs.iter("path")}
    marks = list(group.iter("use")) or [path for path in group.iter("path") if path not in hidden]
    styles = {mark.get("style") for mark in marks}
    holder = next(own for own in group.iter("g") if marks[0] in list(own))
    for mark, text in zip(marks, titles, strict=True):
        Xml.SubElement(mark, "title").text = text
        if len(styles) == 1 and mark.tag == "use":
            holder.set("style", mark.attrib.pop("style"))
        for key in {"x", "y"}.intersection(mark.keys()):
            mark.set(key, DECIMALS.sub(r"\1", mark.attrib[key]))
