"""Formulas of scaling and of cost, of numbers or arrays.

p resources, p0 those of the baseline, q = p/p0; T time, X rate, S speedup, E efficiency. Hours are
of what was allocated, whether it worked or not; money is in the currency of the price. What is
larger or smaller than any measurement (`magnitudes`) is NaN, given or found.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hpc_train.errors import ReportError
from hpc_train.tables.plausible_range import bounded, known

MILLION = 1e6
HOUR_S = 3600.0
# A number, or an array of them: the result has the same shape.
Number = TypeVar("Number", float, NDArray[np.float64])


@bounded
def doubling_efficiency(speedup: Number, doubled: Number) -> Number:
    """Return S(2p)/(2 S(p)): what the second half of the resources adds; CSC asks for 0.75."""
    return above(doubled, "a speedup") / (2 * above(speedup, "a speedup"))


@bounded
def karp_flatt(speedup: Number, q: Number) -> Number:
    """Return e = (1/S - 1/q)/(1 - 1/q), the serial fraction that was measured, for q > 1.

    (A. H. Karp and H. P. Flatt, CACM 33(5), 1990.) An even e is serial work, one that rises with q
    is overhead. It is below 0 where the speedup is above q.
    """
    s, q = above(speedup, "a speedup"), above(q, "q of Karp and Flatt", 1)
    # Multiplied by S q: near the ideal the difference of two inverses has no digits left.
    return (q - s) / (s * (q - 1))


def above(value: Number, what: str, least: float = 0) -> Number:
    """Return a value, or refuse it when it, or one in it, is not a finite number above `least`.

    NaN passes: it stands for what is not known, and for what no measurement can be.

    Raises:
        ReportError: says what must be above what.
    """
    every: Any = np.asarray(value, dtype=np.float64)
    wrong = every[(every <= least) | np.isinf(every)]
    if wrong.size:
        raise ReportError(f"{what} must be a finite number above {least:g}, not {wrong.flat[0]:g}")
    # An array without dimensions as the number that it holds.
    return cast("Number", known(every)[()])


@bounded
def hours(units: Number, seconds: Number) -> Number:
    """Return p T/3600: GPU-hours of GPUs, node-hours of nodes; failed runs count as well."""
    return units * seconds / HOUR_S


@bounded
def hours_per_million(units: Number, samples_per_second: Number) -> Number:
    """Return 1e6 p/(3600 X): GPU- or node-hours for a million samples at a steady rate.

    Start-up, evaluation and failed runs are not in it: `hours` of all runs is what was spent.
    """
    return units * (MILLION / HOUR_S) / above(samples_per_second, "a rate")


@bounded
def price_per_million(gpu_hours_per_million: Number, price_per_gpu_hour: float | None) -> Number:
    """Return GPU-hours per million samples times the price; NaN where no price is stated."""
    return gpu_hours_per_million * (
        float("nan") if price_per_gpu_hour is None else price_per_gpu_hour
    )
