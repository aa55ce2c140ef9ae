"""Figures -> markup of the page: an inline SVG or an image, and the numbers of the figure."""

from __future__ import annotations

import base64
import re
from typing import NamedTuple

from markupsafe import Markup

from hpc_train.model.report import Figure, Report
from hpc_train.reports.formats import csv_table
from hpc_train.reports.formats.page.tables import Grid, grid

# A figure of 10,000 runs is an image, to limit the size of the page.
LARGEST_DRAWING = 500_000
MOST_ROWS = 300
LARGEST_DATA = 100_000
_TAG = re.compile(r"<[^!?<][^<>]*>")
_ID = re.compile(r'(\bid="|\bhref="#|url\(#|\baria-labelledby=")')
# An unterminated part extends to the end of the text.
_AROUND = re.compile(
    r"<\?xml.*?(?:\?>|\Z)|<!DOCTYPE.*?(?:>|\Z)|<!--.*?(?:-->|\Z)|<metadata>.*?(?:</metadata>|\Z)",
    re.DOTALL,
)


class PageFigure(NamedTuple):
    """A figure of the page: `image` is markup, `source` the address of a picture; one is empty.

    `rows` are the numbers of the figure, None if there are none or too many; `download` is a URL of
    the same as CSV.
    """

    caption: str
    name: str
    image: Markup = Markup()
    source: str = ""
    rows: Grid | None = None
    download: str = ""


def drawing(figure: Figure, number: int) -> PageFigure:
    """Return the markup of the `number`-th figure of the page."""
    made = PageFigure(caption=figure.caption, name=figure.name)
    vector = figure.images.get("inline") or figure.images.get("svg") or b""
    picture = figure.images.get("png") or b""
    if vector and (len(vector) <= LARGEST_DRAWING or not picture):
        made = made._replace(image=_inline(vector.decode(), f"f{number}-"))
    elif picture:
        made = made._replace(source=_address("image/png", picture))
    return _with_numbers(made, figure)


def _with_numbers(made: PageFigure, figure: Figure) -> PageFigure:
    if figure.data is None:
        return made
    table = csv_table.render(Report(title="", summary=(), tables=(figure.data,))).encode()
    if len(table) <= LARGEST_DATA:
        made = made._replace(download=_address("text/csv", table))
    return made._replace(rows=grid(figure.data, MOST_ROWS))


def _address(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _inline(svg: str, prefix: str) -> Markup:
    """Return an SVG without its prologue; its ids begin with `prefix`.

    Figures use the same ids, and ids must be unique in a page.
    """
    bare = _AROUND.sub("", svg).strip()
    # Only within tags: the name of a run may be id="x".
    own = _TAG.sub(lambda tag: _ID.sub(rf"\g<1>{prefix}", tag[0]), bare)
    # The SVG is created by this package, and names in it are escaped.
    return Markup(own)  # noqa: S704
