"""Sheet: a canvas with the data and tooltips of its marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure as Canvas

# Inches.
WIDE, NARROW, HEIGHT = 9.6, 5.4, 5.0
MARGINS = {"w_pad": 0.1, "h_pad": 0.06, "wspace": 0.03}


class Sheet(NamedTuple):
    """The canvas of panels; `rows` has one dict per drawn object.

    `hovers`: id of a group of marks -> tooltips of the marks, in their order.
    """

    canvas: Canvas
    caption: str
    rows: list[dict[str, Any]]
    hovers: dict[str, list[str]]


def opened(caption: str, width: float = NARROW, height: float = HEIGHT) -> Sheet:
    """Return an empty sheet of that size in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(canvas)
    canvas.get_layout_engine().set(**MARGINS)  # type: ignore[union-attr]
    return Sheet(canvas, caption, [], {})


def explain(sheet: Sheet, artist: Artist, titles: Sequence[str]) -> None:
    """Set the tooltip of each mark of an artist."""
    if titles:
        name = f"hover-{len(sheet.hovers)}"
        artist.set_gid(name)
        sheet.hovers[name] = list(titles)
