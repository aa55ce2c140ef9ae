"""Figures -> what stands in the page: an SVG within it or a picture, and the numbers behind it."""

from __future__ import annotations

import base64
import re
from typing import NamedTuple

from markupsafe import Markup

from hpc_train.model.report import Figure, Report
from hpc_train.reports.formats import csv_table
from hpc_train.reports.formats.page.tables import Grid, grid

# A drawing of 10,000 runs is a picture: a page has to open, and to be sent.
LARGEST_DRAWING = 500_000
MOST_ROWS = 300
LARGEST_DATA = 100_000
_TAG = re.compile(r"<[^!?<][^<>]*>")
_ID = re.compile(r'(\bid="|\bhref="#|url\(#)')
# What has no end goes on to the end of the text.
_AROUND = re.compile(
    r"<\?xml.*?(?:\?>|\Z)|<!DOCTYPE.*?(?:>|\Z)|<!--.*?(?:-->|\Z)|<metadata>.*?(?:</metadata>|\Z)",
    re.DOTALL,
)


class PageFigure(NamedTuple):
    """A figure of the page: `image` is markup, `source` the address of a picture; one is empty.

    `rows` are the numbers behind it, None where there are none or too many; `download` the same as
    CSV, an address.
    """

    caption: str
    name: str
    image: Markup = Markup()
    source: str = ""
    rows: Grid | None = None
    download: str = ""


def drawing(figure: Figure, number: int) -> PageFigure:
    """Return a figure as it stands in the page, the `number`-th there."""
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

    Figures share ids, and a page must not have two of one name.
    """
    bare = _AROUND.sub("", svg).strip()
    # Only within tags: a run may be called id="x".
    own = _TAG.sub(lambda tag: _ID.sub(rf"\g<1>{prefix}", tag[0]), bare)
    # The SVG is this package's own drawing, in which names are escaped already.
    return Markup(own)  # noqa: S704
