"""Formulas of scaling and of cost, of numbers or arrays.

p resources, p0 those of the baseline, q = p/p0; T time, X rate, S speedup, E efficiency. Hours are
those of the allocation, also for failed runs. Arguments and
results outside the range of measurements (`LEAST`, `MOST`) are NaN.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hpc_train.base.errors import ReportError
from hpc_train.scaling.group_reductions import bounded, known

MILLION = 1e6
HOUR_S = 3600.0
# A number, or an array of them: the result has the same shape.
FloatOrArray = TypeVar("FloatOrArray", float, NDArray[np.float64])


@bounded
def doubling_efficiency(speedup: FloatOrArray, doubled: FloatOrArray) -> FloatOrArray:
    """Return S(2p)/(2 S(p)), the efficiency of a doubling; CSC requires 0.75."""
    return above(doubled, "a speedup") / (2 * above(speedup, "a speedup"))


@bounded
def karp_flatt(speedup: FloatOrArray, q: FloatOrArray) -> FloatOrArray:
    """Return e = (1/S - 1/q)/(1 - 1/q), the experimental serial fraction, for q > 1.

    (A. H. Karp and H. P. Flatt, CACM 33(5), 1990.) A constant e indicates serial work, an e that
    rises with q overhead. It is below 0 where the speedup is above q.
    """
    s, q = above(speedup, "a speedup"), above(q, "q of Karp and Flatt", 1)
    # Multiplied by S q: near the ideal speedup the difference of two inverses loses all digits.
    return (q - s) / (s * (q - 1))


def above(value: FloatOrArray, what: str, least: float = 0) -> FloatOrArray:
    """Return a value; refuse it if it, or an element, is not a finite number above `least`.

    NaN is allowed: it means an unknown or impossible value.

    Raises:
        ReportError: names the value and the limit.
    """
    every: Any = np.asarray(value, dtype=np.float64)
    wrong = every[(every <= least) | np.isinf(every)]
    if wrong.size:
        raise ReportError(f"{what} must be a finite number above {least:g}, not {wrong.flat[0]:g}")
    # An array without dimensions becomes a number.
    return cast("FloatOrArray", known(every)[()])


@bounded
def hours(units: FloatOrArray, seconds: FloatOrArray) -> FloatOrArray:
    """Return p T/3600: GPU-hours of GPUs, node-hours of nodes; failed runs count as well."""
    return units * seconds / HOUR_S


@bounded
def hours_per_million(units: FloatOrArray, samples_per_second: FloatOrArray) -> FloatOrArray:
    """Return 1e6 p/(3600 X): GPU- or node-hours for a million samples at a steady rate.

    Start-up, evaluation and failed runs are not included; `hours` of all runs includes them.
    """
    return units * (MILLION / HOUR_S) / above(samples_per_second, "a rate")
