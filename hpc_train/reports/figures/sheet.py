"""Sheet: a canvas on its way to be a figure, with what its marks stand for."""

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
    """What panels draw on; `rows` has one dict per thing drawn.

    `hovers`: id of a group of marks -> what each mark says under the mouse, in their order.
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
    """Let each mark of an artist say something under the mouse."""
    if titles:
        name = f"hover-{len(sheet.hovers)}"
        artist.set_gid(name)
        sheet.hovers[name] = list(titles)
