"""Drawn values -> limits and ticks of the axes, with plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import TYPE_CHECKING

from hpc_train.reports.figures.series_styles import SizeAxis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.ticker import Locator

# Minimum distance of size ticks, as a fraction of the axis.
APART = 0.06
# Inches that the number at a tick needs; share of a panel without its labels.
LABEL, PANEL = 0.33, 0.8
MOST_PLAIN = 1e15
# Least space between two numbers below an axis, in their font size.
SPACE = 0.6
# Shares of the height: above and below the values, and below them for the hollow markers.
MARGIN = 0.06
ROOM = 0.12


def size_axis(axes: Axes, place: SizeAxis) -> None:
    """Put a tick at each size, or only at the last of sizes that are too close."""
    set_ticks(axes, place.sizes, log2(place.high / place.low))
    axes.set_xlim(place.low, place.high)
    axes.minorticks_off()


def plain_number(value: float) -> str:
    """Return `16,384` or `0.25`, without an exponent up to 1e15."""
    whole = float(value).is_integer() and abs(value) < MOST_PLAIN
    return f"{value:,.0f}" if whole else f"{value:,.6g}"


def set_ticks(axes: Axes, sizes: Sequence[float], span: float) -> None:
    """Put a tick at each size of an axis of `span` doublings for which there is space.

    The last and the first size have one, if both have space.
    """
    grid = axes.get_gridspec()
    inches = PANEL * axes.figure.bbox.width / axes.figure.dpi / (grid.ncols if grid else 1)
    apart = max(APART, LABEL / inches) * span
    ticks: list[float] = []
    for size in (*sizes[-1:], *sizes[:1], *reversed(sizes)):
        if all(abs(log2(size / other)) >= apart for other in ticks):
            ticks.append(size)
    ticks.sort()
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [plain_number(size) for size in ticks])


def thin_labels(axes: Axes) -> None:
    """Hide each number of a size axis that would touch the next shown one; the last is shown.

    After the layout of the figure, because it determines the width of the axis.
    """
    if axes.get_xscale() != "log":
        return
    shown = float("inf")
    for label in reversed(axes.get_xticklabels()):
        box = label.get_window_extent()
        space = SPACE * float(label.get_fontsize()) * axes.figure.dpi / 72
        label.set_visible(box.x1 + space <= shown)
        shown = box.x0 if label.get_visible() else shown


def value_axis(axes: Axes, values: list[float], *, hollow: bool, doubling: bool) -> None:
    """Fit the axis to the values, with a small margin and a strip below for hollow markers.

    `doubling` puts the ticks of a wide range at powers of two instead of 1-2-5.
    """
    from matplotlib.ticker import FuncFormatter

    low, high = (min(values), max(values)) if values else (1.0, 1.0)
    # For a single value, or nearly equal values, show at least 10 % around it.
    low, high = min(low, high / 1.1), max(high, low * 1.1)
    height = log2(high / low)
    axes.set_yscale("log", base=2)
    axes.set_ylim(low / 2 ** (height * (ROOM if hollow else MARGIN)), high * 2 ** (height * MARGIN))
    axes.yaxis.set_major_locator(_locator(high / low, doubling=doubling))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: plain_number(value)))
    axes.minorticks_off()


def _locator(ratio: float, *, doubling: bool) -> Locator:
    from matplotlib.ticker import LogLocator, MaxNLocator

    if ratio < (3 if doubling else 5):
        return MaxNLocator(6, steps=[1, 2, 2.5, 5, 10])
    if doubling:
        return LogLocator(2, numticks=9)
    subs = (1, 2, 3, 5, 7) if ratio < 20 else (1, 2, 5) if ratio < 2000 else (1,)
    return LogLocator(10, subs=subs, numticks=12)


def plain_axis(axes: Axes, low: float, high: float) -> None:
    """Show a linear axis from `low` to a little above `high`."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.set_ylim(low, high + MARGIN * (high - low))
    axes.yaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: plain_number(value)))
