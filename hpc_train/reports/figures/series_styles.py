"""Series -> colour, marker, line style, and the shift of its marks in points of the page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import log2
from typing import Any, NamedTuple

from hpc_train.reports.value_format import Row

# After Okabe and Ito, darker, so that a line and a text have a contrast of 4.5 on white. For
# colour-blind readers, too, any two differ (CIELAB, colour vision after Machado et al. 2009).
COLOURS = (
    "#0068a6", "#b84600", "#00755a", "#9a4b83", "#4d3800",
    "#44505e", "#000000", "#3a10d8", "#860933", "#c913b9",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
DASHES = (
    "-", "--", "-.", (0, (1, 1)), (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (8, 2)),
    (0, (1, 3)), (0, (8, 2, 2, 2)), (0, (5, 1, 1, 1, 1, 1, 1, 1)),
)  # fmt: skip
# From this number of series on, each has a panel of its own.
SMALL_MULTIPLES = 7
# Points (1/72 inch) between the intervals of two series at a size, and from first to last.
APART, SPREAD = 3.0, 10.0
# Share of the gap between two sizes that marks may use.
CLUSTER = 0.6
# Width in points of a panel with two panels in a figure.
PANEL_POINTS = 290
# Share of the axis beyond the first and the last size.
MARGIN = 0.07
# Points: the shift of the runs of the first series; markers of a single series, of the first of
# several, and by how much each further one is smaller.
RUNS = 5.0
ALONE, LARGEST, SMALLER = 6.0, 7.0, 0.6


class Style(NamedTuple):
    """Style of one series; `beside` and `runs` shift marks sideways, in points of the page.

    `beside`: intervals, boxes and hollow markers, `runs`: single runs. Lines and means are never
    shifted; where series are equal, the markers (`marker_points`) differ in size.
    """

    series: str
    colour: str
    marker: str
    dashes: Any
    beside: float
    runs: float
    marker_points: float


class SizeAxis(NamedTuple):
    """The sizes on the x axis, and its limits."""

    sizes: tuple[int, ...]
    low: float
    high: float


def layout(points: Sequence[Row]) -> SizeAxis:
    """Place the sizes on a log2 axis, with space for marks at the borders."""
    sizes = tuple(sorted({row["size"] for row in points if row["size"]})) or (1,)
    margin = max(MARGIN * log2(sizes[-1] / sizes[0]), 0.25)
    return SizeAxis(sizes, sizes[0] / 2**margin, sizes[-1] * 2**margin)


def slot(points: Sequence[Row]) -> float:
    """Return the distance of two series at a size, in points of the page."""
    place, count = layout(points), together(points)
    if count < 2:
        return APART
    gaps = [log2(b / a) for a, b in pairwise(place.sizes)]
    nearest = min(gaps, default=1.0) / log2(place.high / place.low) * PANEL_POINTS
    return min(APART, SPREAD / (count - 1), CLUSTER * nearest / count)


def styles(points: Sequence[Row], scale: float = 1.0) -> list[Style]:
    """Return the series in order: from left to right at each size, and in the legend.

    `scale` is the size of the markers relative to those on a screen.
    """
    apart, count = slot(points), together(points)
    made = []
    for i, name in enumerate(_names(points)):
        k = i % len(COLOURS)
        other = (i + i // len(COLOURS)) % len(MARKERS)
        centre = apart * (i - (count - 1) / 2) if count > 1 else 0.0
        made.append(
            Style(
                series=name,
                colour=COLOURS[k],
                # When colours repeat, markers and dashes change.
                marker=MARKERS[other],
                dashes=DASHES[other],
                beside=centre,
                runs=scale * RUNS + (apart * i if count > 1 else 0.0),
                marker_points=scale * (LARGEST - SMALLER * i if count > 1 else ALONE),
            )
        )
    return made


def together(points: Sequence[Row]) -> int:
    """Return the number of series that share a panel."""
    count = len(_names(points))
    return count if count < SMALL_MULTIPLES else 1


def _names(points: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(str(row["series"]) for row in points))
