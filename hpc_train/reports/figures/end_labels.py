"""Lines of a panel -> the names of their series at their ends, without overlaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hpc_train.reports.figures.canvas import Canvas, Series
from hpc_train.reports.figures.plot_data import PlotData
from hpc_train.reports.figures.series_styles import SMALL_MULTIPLES
from hpc_train.reports.point_and_series_names import series_heading, short_series
from hpc_train.reports.value_format import one_line

if TYPE_CHECKING:
    from matplotlib.text import Annotation

# Characters of a name that is written at its line; longer names are in the legend.
LONGEST = 24
# If panels are beside one another, longer names are at the last one only.
SHORT = 14
# Share of a paper's width that the longest name may take, in characters per inch.
PER_INCH = 5
# Points from the panel to a name; for the layout, roughly the same as a share of the panel.
GAP, ROOM = 5.0, 1.03
LINE = 1.2


def direct(plot: PlotData) -> bool:
    """Whether the series are named at their lines instead of in the legend."""
    names = _names(plot)
    room = LONGEST if plot.paper.width is None else min(LONGEST, int(PER_INCH * plot.paper.width))
    return 1 < len(names) < SMALL_MULTIPLES and max(map(len, names.values())) <= room


def draw_end_labels(canvas: Canvas, plot: PlotData) -> None:
    """Write the name of each series to the right of the panels, with a line to its last point."""
    names = _names(plot)
    panels = list({line.axes: None for line in canvas.lines})
    if max(map(len, names.values())) > SHORT:
        panels = panels[-1:]
    for axes in panels:
        last = {line.name: line for line in canvas.lines if line.axes is axes}
        canvas.labels.extend(_label(line, names[name]) for name, line in last.items())


def _names(plot: PlotData) -> dict[str, str]:
    heading = series_heading(plot.points)
    return {s.series: one_line(short_series(s.series, heading)) for s in plot.styles}


def _label(line: Series, name: str) -> Annotation:
    return line.axes.annotate(
        name, (line.x[-1], line.y[-1]), xytext=(ROOM, 0.5), textcoords="axes fraction",
        color=line.colour, va="center", ha="left", annotation_clip=False, fontsize="small",
        arrowprops={"arrowstyle": "-", "color": line.colour, "lw": 0.6, "shrinkA": 1, "shrinkB": 3,
                    "relpos": (0, 0.5)},
    )  # fmt: skip


def spread(canvas: Canvas) -> None:
    """Move the names to the heights of their lines, at least one line of text apart.

    After the layout of the figure, because it determines the heights.
    """
    for axes in {label.axes: None for label in canvas.labels}:
        if axes is None:
            continue
        own = [label for label in canvas.labels if label.axes is axes]
        pixels = canvas.figure.dpi / 72
        box = axes.get_window_extent()
        wanted = [float(axes.transData.transform(label.xy)[1]) for label in own]
        line = LINE * pixels * max(float(label.get_fontsize()) for label in own)
        for label, y in zip(own, apart(wanted, line, (box.y0, box.y1)), strict=True):
            label.xyann = (1 + GAP * pixels / box.width, (y - box.y0) / box.height)


def apart(wanted: Sequence[float], least: float, room: tuple[float, float]) -> list[float]:
    """Return places near the wanted ones, in their order, at least `least` apart, within `room`."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    ideal = [wanted[i] for i in order]
    up = _upwards(ideal, least, room[0])
    down = _downwards(ideal, least, room[1])
    # Between the two, a group stays around its lines.
    middle = [(a + b) / 2 for a, b in zip(up, down, strict=True)]
    places = _downwards(_upwards(middle, least, room[0]), least, room[1])
    found = dict(zip(order, places, strict=True))
    return [found[i] for i in range(len(wanted))]


def _upwards(wanted: Sequence[float], least: float, low: float) -> list[float]:
    places: list[float] = []
    for y in wanted:
        places.append(max(y, places[-1] + least if places else low))
    return places


def _downwards(wanted: Sequence[float], least: float, high: float) -> list[float]:
    return [-y for y in _upwards([-y for y in reversed(wanted)], least, -high)][::-1]
