"""Tables of a study -> rows to draw, the look of each series; a canvas with panels and legend."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log2
from typing import TYPE_CHECKING, Any, NamedTuple

from hpc_train.base.metrics import BASIS_COLUMNS
from hpc_train.jobs.study import ALONE
from hpc_train.reports.report import (
    LEVEL,
    OK,
    SCREEN,
    SIZE,
    Paper,
    Row,
    SizeUnit,
    counted,
    one_line,
    plain_rows,
    point_of,
    series_heading,
    short_series,
    size_unit,
)
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.measurements import FlagCode
from hpc_train.scaling.scaling_fits import Fit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure

# After Okabe and Ito, darker, so that a line and a text have a contrast of 4.5 on white. For
# colour-blind readers, too, any two differ (CIELAB, colour vision after Machado et al. 2009).
COLOURS = (
    "#0068a6", "#b84600", "#00755a", "#9a4b83", "#4d3800",
    "#44505e", "#000000", "#3a10d8", "#860933", "#c913b9",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
DASHES: tuple[Any, ...] = (
    "-", "--", "-.", (0, (1, 1)), (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (8, 2)),
    (0, (1, 3)), (0, (8, 2, 2, 2)), (0, (5, 1, 1, 1, 1, 1, 1, 1)),
)  # fmt: skip
MOST_SERIES = len(COLOURS)
# From this number of series on, each has a panel of its own.
SMALL_MULTIPLES = 7
# Points (1/72 inch) between the intervals of two series at a size, and from first to last.
APART, SPREAD = 3.0, 10.0
# Points: the shift of the runs of the first series; markers of a single series, of the first of
# several, and by how much each further one is smaller.
RUNS, SINGLE, LARGEST, SMALLER = 5.0, 6.0, 7.0, 0.6
# Width in inches of paper from which on markers have their full size.
FULL = 6.0
# Flags that a figure does not mark: without an interval they are seen.
UNMARKED = frozenset({
    FlagCode.ONE_RUN, FlagCode.ONE_BASELINE_RUN, FlagCode.NO_SPREAD,
    FlagCode.WHOLE_SECONDS,
})  # fmt: skip
OF_RUNS = (
    "run_id", "series", "state", "problem", *SIZE, "step_time_s",
    *BASIS_COLUMNS.values(),
)  # fmt: skip


class Style(NamedTuple):
    """Style of one series; `beside` and `runs` shift marks sideways, in points of the page.

    `beside`: intervals, boxes and hollow markers, `runs`: single runs. Lines and means are never
    shifted; where series are equal, the markers (`points`) differ in size.
    """

    series: str
    colour: str
    marker: str
    dashes: Any
    beside: float
    runs: float
    points: float


class Measured(NamedTuple):
    """A row for each run, point, run and node; and the laws of each series."""

    runs: pd.DataFrame
    points: pd.DataFrame
    laws: tuple[Fit, ...]
    nodes: pd.DataFrame


class PlotData(NamedTuple):
    """The rows of one study for the panels; each has its `size` in `unit`, or None.

    `runs` and `points` are those of the series that are drawn (`styles`), `every_run` is the whole
    table; `all_series` also counts what is not drawn. `apart` are the points of the
    page between two series. A run has its `point`.
    """

    study: ExpectedStudy
    runs: Sequence[Row]
    points: Sequence[Row]
    unit: SizeUnit
    styles: Sequence[Style]
    sizes: Sequence[int]
    apart: float
    laws: Sequence[Fit]
    nodes: pd.DataFrame
    every_run: pd.DataFrame
    all_series: int
    paper: Paper

    @property
    def many(self) -> bool:
        """Whether there are too many series for one panel."""
        return len(self.styles) >= SMALL_MULTIPLES

    def own(self, style: Style) -> list[Row]:
        """Return the points of one series."""
        return [row for row in self.points if row["series"] == style.series]

    def own_runs(self, style: Style) -> list[Row]:
        """Return the runs of one series that have a result."""
        return [r for r in self.runs if r["series"] == style.series and r["state"] == OK]

    def empty(self, style: Style) -> list[Row]:
        """Return the points of one series that have a size but no run with a result."""
        return [row for row in self.own(style) if row["size"] and not row["n_ok"]]

    def gaps(self, style: Style) -> list[int]:
        """Return the sizes at which one series has no result."""
        there = {row["size"] for row in self.own(style) if row["n_ok"]}
        return [row["size"] for row in self.empty(style) if row["size"] not in there]


def plot_data_of(study: ExpectedStudy, measured: Measured, paper: Paper = SCREEN) -> PlotData:
    """Return the first series of a study."""
    series = list(dict.fromkeys(measured.points["series"]))
    shown = series[:MOST_SERIES]
    own = measured.runs[measured.runs["series"].isin(shown)]
    known = [name for name in OF_RUNS if name in own.columns]
    points = plain_rows(measured.points[measured.points["series"].isin(shown)])
    unit = size_unit(plain_rows(measured.points[[*SIZE]]))
    for row in points:
        row["size"] = row[unit.key]
    runs = plain_rows(own[known].assign(size=own[unit.key]))
    point = {point_of(row): row for row in points}
    for run in runs:
        run["point"] = point[point_of(run)]
        run["work"] = run["point"]["work"]
    sizes = sorted({row["size"] for row in points if row["size"]}) or [1]
    scale = min(1.0, max(0.6, (paper.width or FULL) / FULL))
    count = len(shown) if len(shown) < SMALL_MULTIPLES else 1
    apart = min(APART, SPREAD / max(1, count - 1))
    styles = [
        Style(
            series=name,
            colour=COLOURS[i],
            marker=MARKERS[i],
            dashes=DASHES[i],
            beside=apart * (i - (count - 1) / 2) if count > 1 else 0.0,
            runs=scale * RUNS + (apart * i if count > 1 else 0.0),
            points=scale * (LARGEST - SMALLER * i if count > 1 else SINGLE),
        )
        for i, name in enumerate(shown)
    ]
    return PlotData(
        study=study,
        runs=runs,
        points=points,
        unit=unit,
        styles=styles,
        sizes=sizes,
        apart=apart,
        laws=[law for law in measured.laws if law.series in shown],
        nodes=measured.nodes,
        every_run=measured.runs,
        all_series=len(series),
        paper=paper,
    )


def is_flagged(row: Row) -> bool:
    """Whether a point has a flag on more than the number of its runs."""
    return any(flag.code not in UNMARKED for flag in row["flags"])


def usable(row: Row, column: str) -> bool:
    """Whether a row has a size, and a value above zero."""
    return bool(row["size"]) and row[column] is not None and row[column] > 0


LegendEntry = tuple["Artist", str]
# Inches.
WIDE, NARROW, HEIGHT = 9.6, 5.4, 5.0
MARGINS = {"w_pad": 0.1, "h_pad": 0.06, "wspace": 0.03}
# Narrower figures have their panels one below the other, of this height over width.
BESIDE, SHAPE = 6.0, 0.72
# Font size in points: of figures on a screen and, up to a width in inches, on paper.
FONT = 9.0
PAPER_FONTS = ((4.5, 7.5), (7.5, 8.0))
# Small multiples: inches of a single row on a screen, and of title and legend of others; height
# over width of a panel, the width in inches that it needs, and of a character of its title.
ONE_ROW, AROUND = 4.4, 1.6
UPRIGHT, LEAST_WIDTH, CHARACTER = 1.1, 1.05, 0.085
GREY, BLACK = "0.35", "black"
DOTTED = (0, (1, 2))
# Shares of the height: above and below the values, and below them for the hollow markers.
MARGIN, ROOM = 0.06, 0.12
# Share of the axis beyond the first and the last size.
BESIDE_SIZES = 0.07
MOST_PLAIN = 1e15
# Characters of a line of the legend.
LABEL_WIDTH = 60
WITH_INTERVAL = ("speedup", "samples_per_second")
# Inches of a character of the legend and of the title, and of a sample, at the usual font size.
LETTER, TITLE_LETTER, SAMPLE = 0.075, 0.08, 0.6
# Rows of the legend for which the figure has space, and inches that each further row adds.
ROWS, ROW = 3, 0.19


@dataclass
class Canvas:
    """The canvas of panels; `rows` has one dict per drawn object."""

    figure: MplFigure
    caption: str
    paper: Paper
    rows: list[dict[str, Any]] = field(default_factory=list)

    def panels(self, count: int) -> list[Axes]:
        """Return panels side by side or, on a narrow figure, one below the other."""
        width = self.figure.get_figwidth()
        if below := count > 1 and width < BESIDE:
            self.figure.set_figheight(count * SHAPE * width)
        shape = (count, 1) if below else (1, count)
        return list(self.figure.subplots(*shape, squeeze=False).flat)


def opened(caption: str, paper: Paper, width: float = NARROW, height: float = HEIGHT) -> Canvas:
    """Return an empty canvas of that size in inches, or of the width of the paper."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as MplFigure

    if paper.width is not None:
        height = paper.width * (SHAPE if width == NARROW else height / width)
        width = paper.width
    figure = MplFigure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(**MARGINS)  # type: ignore[union-attr]
    return Canvas(figure, caption, paper)


def split(caption: str, plot: PlotData) -> tuple[Canvas, list[tuple[Axes, PlotData]]]:
    """Return a canvas with one panel for all series or, if they are many, one for each."""
    if plot.many:
        return faceted(caption, plot)
    canvas = opened(caption, plot.paper)
    return canvas, [(canvas.panels(1)[0], plot)]


def faceted(caption: str, plot: PlotData) -> tuple[Canvas, list[tuple[Axes, PlotData]]]:
    """Return a canvas with a panel for each series, its name above it, and its data."""
    count = len(plot.styles)
    width = plot.paper.width or (NARROW if count == 1 else WIDE)
    # Rows are as equal as possible.
    most = max(1, min(5, int(width / LEAST_WIDTH)))
    columns = count if count <= 3 <= most else -(-count // -(-count // most))
    rows = -(-count // columns)
    least = ONE_ROW if rows == 1 and columns <= 3 and width >= NARROW else 0.0
    height = AROUND * min(1.0, width / WIDE) + rows * UPRIGHT * width / columns
    canvas = opened(caption, plot.paper, width)
    canvas.figure.set_figheight(max(least, height))
    grid = canvas.figure.subplots(rows, columns, squeeze=False, sharex=False, sharey=True).flat
    for spare in grid[count:]:
        spare.remove()
    heading, room = series_heading(plot.points), int(width / columns / CHARACTER)
    panels = []
    for i, (axes, style) in enumerate(zip(grid, plot.styles, strict=False)):
        # Of three rows or more, the label of the middle one is enough, and the others collide.
        row = i // columns
        axes.yaxis.label.set_visible(i % columns == 0 and (rows <= 2 or row == (rows - 1) // 2))
        axes.xaxis.label.set_visible(i + columns >= count)
        if style.series != ALONE:
            name = textwrap.shorten(series_name(style.series, heading), 2 * room, placeholder="…")
            axes.set_title(textwrap.fill(name, room), color=style.colour)
        own = [row for row in plot.runs if row["series"] == style.series]
        panels.append((axes, plot._replace(styles=[style], points=plot.own(style), runs=own)))
    return canvas, panels


def plain_number(value: float) -> str:
    """Return `16,384` or `0.25`, without an exponent up to 1e15."""
    is_whole = float(value).is_integer() and abs(value) < MOST_PLAIN
    return f"{value:,.0f}" if is_whole else f"{value:,.6g}"


def size_axis(axes: Axes, sizes: Sequence[float]) -> None:
    """Put a tick at each size; `thin_labels` hides numbers that are too close.

    Beside the first and the last one there is space for marks.
    """
    room = 2 ** max(BESIDE_SIZES * log2(sizes[-1] / sizes[0]), 0.25)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [plain_number(size) for size in sizes])
    axes.set_xlim(sizes[0] / room, sizes[-1] * room)
    axes.minorticks_off()


def thin_labels(axes: Axes) -> None:
    """Hide each number of a size axis that would touch another one; the last and first are shown.

    After the layout of the figure, because it determines the width of the axis.
    """
    labels = axes.get_xticklabels() if axes.get_xscale() == "log" else []
    shown: list[tuple[float, float]] = []
    for label in (*labels[-1:], *labels[:-1][:1], *reversed(labels[1:-1])):
        box = label.get_window_extent()
        space = 0.6 * float(label.get_fontsize()) * axes.figure.dpi / 72
        label.set_visible(all(box.x1 + space <= a or b + space <= box.x0 for a, b in shown))
        if label.get_visible():
            shown.append((box.x0, box.x1))


def log_axis(axes: Axes, values: Sequence[float], room: float = MARGIN) -> None:
    """Fit a logarithmic y axis to the values, with a small margin, and `room` at the lower end."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    low, high = (min(values), max(values)) if values else (1.0, 1.0)
    # For a single value, or nearly equal values, show at least 10 % around it.
    low, high = min(low, high / 1.1), max(high, low * 1.1)
    ratio = high / low
    axes.set(yscale="log", ylim=(low / ratio**room, high * ratio**MARGIN))
    subs = (1, 2, 3, 5, 7) if ratio < 20 else (1, 2, 5) if ratio < 2000 else (1,)
    near = MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10])
    axes.yaxis.set_major_locator(near if ratio < 5 else LogLocator(10, subs=subs))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: plain_number(value)))
    axes.yaxis.set_minor_locator(NullLocator())


def plain_axis(axes: Axes, low: float, high: float) -> None:
    """Show a linear axis from `low` to a little above `high`."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.set_ylim(low, high + MARGIN * (high - low))
    axes.yaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: plain_number(value)))


def font_size(paper: Paper) -> float:
    """Return the size of the text in points: a figure on paper is not scaled down."""
    fitting = (size for width, size in PAPER_FONTS if paper.width and paper.width <= width)
    return next(fitting, FONT)


def heading_lines(plot: PlotData, left_out: int = 0) -> str:
    """Return the figure's title: the study, its regime, n and the intervals.

    `left_out` points could not be drawn.
    """
    regime = plot.points[0]["regime"] if plot.points else "unknown"
    parts = [f"{regime} scaling"] if regime != "unknown" else []
    # The other reading of a rate, and its option, are in the answer.
    assumed = (str(row["assumption"]).partition("; ")[0] for row in plot.points)
    parts += dict.fromkeys(filter(None, assumed))
    counts = sorted({row["n_ok"] for row in plot.points if row["n_ok"]}) or [0]
    alone = len(counts) == 1
    parts.append(
        f"{counted(counts[0], 'run') if alone else f'{counts[0]} to {counts[-1]} runs'} a point"
    )
    if any(row[f"{name}_low"] is not None for row in plot.points for name in WITH_INTERVAL):
        parts.append(f"pointwise {LEVEL} intervals")
    else:
        parts.append("no intervals")
    if left_out:
        parts.append(f"{counted(left_out, 'point')} not drawn")
    return titled(plot, parts, series_left_out(plot))


def series_left_out(plot: PlotData) -> list[str]:
    """Return a text on the series that are drawn, if some are not."""
    shown = len(plot.styles)
    return [f"first {shown} of {plot.all_series} series"] if plot.all_series > shown else []


def titled(plot: PlotData, *lines: Sequence[str]) -> str:
    """Return the study's name, and below it lines of parts."""
    return "\n".join([one_line(plot.study.name), *(", ".join(parts) for parts in lines if parts)])


def draw_title(canvas: Canvas, text: str) -> None:
    """Write the title lines, no wider than the figure; nothing if the paper has no titles."""
    if not canvas.paper.title:
        return
    size = font_size(canvas.paper)
    width = int(canvas.figure.get_figwidth() / TITLE_LETTER * FONT / size)
    wrapped = "\n".join(textwrap.fill(line, width) for line in text.split("\n"))
    canvas.figure.suptitle(wrapped, fontsize=size + 2, linespacing=1.4)


def sample(**look: Any) -> Artist:
    """Return what a legend shows of a line or, with `ls="none"`, of a mark."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **look)


def ideal_entry() -> LegendEntry:
    """Return the entry for the dotted line."""
    return sample(color=GREY, lw=1.2, ls=DOTTED), "ideal"


def hollow_entry(plot: PlotData) -> list[LegendEntry]:
    """Return the entry for hollow markers, if there are any."""
    there = any(row["size"] and not row["n_ok"] for row in plot.points)
    mark = sample(ls="none", marker="o", mfc="none", mec=GREY, mew=1.4, ms=7)
    return [(mark, "hollow: no run with a result")] if there else []


def draw_legend(
    canvas: Canvas, plot: PlotData, more: Sequence[LegendEntry], *, named: bool
) -> None:
    """Name the series, unless their panels do, then the other marks, in rows."""
    entries, heading = list(more), ""
    if named and 1 < len(plot.styles) < SMALL_MULTIPLES:
        heading = series_heading(plot.points)
        entries = [
            (
                sample(
                    color=one.colour,
                    marker=one.marker,
                    ls=one.dashes,
                    lw=1.4,
                    mec="white",
                    mew=0.6,
                    ms=one.points,
                ),
                textwrap.fill(series_name(one.series, heading), LABEL_WIDTH),
            )
            for one in plot.styles
        ] + entries
    if not entries:
        return
    labels = [label for _, label in entries]
    longest = max(len(line) for label in labels for line in label.split("\n"))
    width = canvas.figure.get_figwidth() * FONT / font_size(plot.paper)
    columns = max(1, min(len(labels), int(width / (SAMPLE + LETTER * longest))))
    lines = -(-len(labels) // columns) + sum(label.count("\n") for label in labels)
    canvas.figure.set_figheight(canvas.figure.get_figheight() + ROW * max(0, lines - ROWS))
    canvas.figure.legend(
        [handle for handle, _ in entries], labels, loc="outside lower center", ncols=columns,
        frameon=False, title=heading or None,
    )  # fmt: skip


def series_name(series: str, heading: str = "") -> str:
    """Return the name of a series on one line."""
    return one_line("measured" if series == ALONE else short_series(series, heading))
