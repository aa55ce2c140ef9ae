"""Series -> colour, marker, line style and horizontal offset."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import log2
from typing import Any, NamedTuple

from hpc_train.reports.plain_rows import Row

# Okabe and Ito's colours, without yellow, which is not visible on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (8, 2)))
# Shares of the width of a panel, of the gap between two sizes, and of a series' own slot.
WIDEST_SLOT = 0.06
CLUSTER = 0.75
MARGIN = 0.12
# Margin beyond the first and the last size: slightly more than half of a cluster.
OUTSIDE = 0.6
# Within a slot: a series' runs are nearer to its own mean than to the next series'.
MEAN_AT, RUNS_AT = -0.23, 0.23
# A single series has its mean at its size.
ALONE_AT, ALONE_RUNS_AT = 0.0, 0.4
# Width of a panel in points (1/72 inch), roughly: markers shrink with their slot.
PANEL_POINTS = 290


class Style(NamedTuple):
    """Style of one series; `mean` and `runs` are factors for the x of its means and runs.

    `marker_points` is the size of a mean's marker in points.
    """

    series: str
    colour: str
    marker: str
    dashes: Any
    mean: float
    runs: float
    marker_points: float


class SizeAxis(NamedTuple):
    """The sizes on the x axis, its limits, and the width of one series' slot in powers of two."""

    sizes: tuple[int, ...]
    low: float
    high: float
    slot: float


def layout(points: Sequence[Row]) -> SizeAxis:
    """Place the sizes on a log2 axis, with space for each size's series at the borders."""
    sizes = tuple(sorted({row["ranks"] for row in points if row["ranks"]})) or (1,)
    span = log2(sizes[-1] / sizes[0])
    margin = max(MARGIN * span, 0.25)
    panel = span + 2 * margin
    gaps = [log2(b / a) for a, b in pairwise(sizes)]
    count = max(len(_names(points)), 1)
    slot = min(CLUSTER * min(gaps, default=panel) / count, WIDEST_SLOT * panel)
    margin = max(margin, OUTSIDE * slot * count)
    return SizeAxis(sizes, sizes[0] / 2**margin, sizes[-1] * 2**margin, slot)


def room(place: SizeAxis) -> float:
    """Return the approximate width of a series at a size, in points (1/72 inch)."""
    return PANEL_POINTS * place.slot / log2(place.high / place.low)


def styles(points: Sequence[Row]) -> list[Style]:
    """Return the series in order: from left to right at each size, and in the legend."""
    place = layout(points)
    names = _names(points)
    mean_at, runs_at = (MEAN_AT, RUNS_AT) if len(names) > 1 else (ALONE_AT, ALONE_RUNS_AT)
    made = []
    for i, name in enumerate(names):
        centre = i - (len(names) - 1) / 2
        k = i % len(COLOURS)
        other = (i + i // len(COLOURS)) % len(MARKERS)
        made.append(
            Style(
                series=name,
                colour=COLOURS[k],
                # When colours repeat, markers and dashes change.
                marker=MARKERS[other],
                dashes=DASHES[other],
                mean=2 ** (place.slot * (centre + mean_at)),
                runs=2 ** (place.slot * (centre + runs_at)),
                marker_points=min(6.0, max(3.0, 0.5 * room(place))),
            )
        )
    return made


def _names(points: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(str(row["series"]) for row in points))
