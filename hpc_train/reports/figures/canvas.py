"""Canvas: a figure that is being drawn, with the data and the tooltips of its marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hpc_train.scaling.report_options import Paper

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure
    from matplotlib.text import Annotation

# Inches.
WIDE, NARROW, HEIGHT = 9.6, 5.4, 5.0
MARGINS = {"w_pad": 0.1, "h_pad": 0.06, "wspace": 0.03}
# Narrower figures have their panels one below the other, of this height over width.
BESIDE, SHAPE = 6.0, 0.72
# Font size in points: of figures on a screen and, up to a width in inches, on paper.
FONT = 9.0
PAPER_FONTS = ((4.5, 7.5), (7.5, 8.0))


class Series(NamedTuple):
    """The line of a series on a panel, in data coordinates."""

    axes: Axes
    name: str
    colour: str
    x: list[float]
    y: list[float]


class Canvas(NamedTuple):
    """The canvas of panels; `rows` has one dict per drawn object.

    `hovers`: id of a group of marks -> tooltips of the marks, in their order. `lines`: what labels
    at line ends and the grey lines of small multiples are made of.
    """

    figure: MplFigure
    caption: str
    paper: Paper
    rows: list[dict[str, Any]]
    hovers: dict[str, list[str]]
    lines: list[Series]
    labels: list[Annotation]


def opened(caption: str, paper: Paper, width: float = NARROW, height: float = HEIGHT) -> Canvas:
    """Return an empty canvas of that size in inches, or of the width of the paper."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as MplFigure

    size = (width, height)
    if paper.width is not None:
        size = (
            paper.width,
            paper.width * SHAPE if width == NARROW else paper.width * height / width,
        )
    figure = MplFigure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(**MARGINS)  # type: ignore[union-attr]
    return Canvas(figure, caption, paper, [], {}, [], [])


def panels(canvas: Canvas, count: int) -> list[Axes]:
    """Return panels side by side or, on a narrow figure, one below the other."""
    width = canvas.figure.get_figwidth()
    below = count > 1 and width < BESIDE
    if below:
        canvas.figure.set_figheight(count * SHAPE * width)
    shape = (count, 1) if below else (1, count)
    return list(canvas.figure.subplots(*shape, squeeze=False).flat)


def font_size(paper: Paper) -> float:
    """Return the size of the text in points: a figure on paper is not scaled down."""
    fitting = (size for width, size in PAPER_FONTS if paper.width and paper.width <= width)
    return next(fitting, FONT)


def explain(canvas: Canvas, artist: Artist, titles: Sequence[str]) -> None:
    """Set the tooltip of each mark of an artist."""
    if titles:
        name = f"hover-{len(canvas.hovers)}"
        artist.set_gid(name)
        canvas.hovers[name] = list(titles)
