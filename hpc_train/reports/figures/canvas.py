"""Canvas: a figure that is being drawn, with the data and the tooltips of its marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure as MplFigure

# Inches.
WIDE, NARROW, HEIGHT = 9.6, 5.4, 5.0
MARGINS = {"w_pad": 0.1, "h_pad": 0.06, "wspace": 0.03}


class Canvas(NamedTuple):
    """The canvas of panels; `rows` has one dict per drawn object.

    `hovers`: id of a group of marks -> tooltips of the marks, in their order.
    """

    figure: MplFigure
    caption: str
    rows: list[dict[str, Any]]
    hovers: dict[str, list[str]]


def opened(caption: str, width: float = NARROW, height: float = HEIGHT) -> Canvas:
    """Return an empty canvas of that size in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as MplFigure

    figure = MplFigure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(**MARGINS)  # type: ignore[union-attr]
    return Canvas(figure, caption, [], {})


def explain(canvas: Canvas, artist: Artist, titles: Sequence[str]) -> None:
    """Set the tooltip of each mark of an artist."""
    if titles:
        name = f"hover-{len(canvas.hovers)}"
        artist.set_gid(name)
        canvas.hovers[name] = list(titles)
