"""Laws of scaling: each quantity of a scaling table as a pure function of numbers or arrays.

p resources, p0 those of the baseline, q = p/p0; T time, X rate, S speedup, E efficiency. What is
larger or smaller than any measurement (`magnitudes`) is NaN, given or found.
"""

from __future__ import annotations

from math import inf, isnan, nan, sqrt
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hpc_train.errors import ReportError
from hpc_train.tables.intervals import Interval
from hpc_train.tables.magnitudes import bounded, known, usable

# A number, or an array of them: the result has the same shape.
Number = TypeVar("Number", float, NDArray[np.float64])


@bounded
def speedup(rate: Number, baseline: Number) -> Number:
    """Return S = X(p)/X(p0), the relative speedup by throughput (Hoefler and Belli, SC15, rule 1).

    A speedup is of strong scaling only when the global batch is the same at both.
    """
    return above(rate, "a rate") / above(baseline, "the baseline's rate")


@bounded
def speedup_of_times(time: Number, baseline: Number) -> Number:
    """Return S = T(p0)/T(p), the relative speedup by time (Hoefler and Belli, SC15, rule 1)."""
    return above(baseline, "the baseline's time") / above(time, "a time")


@bounded
def efficiency(speedup: Number, q: Number) -> Number:
    """Return E = S/q, of strong scaling and, by throughput, of weak scaling as well."""
    return above(speedup, "a speedup") / above(q, "q")


@bounded
def weak_efficiency(step_time: Number, baseline: Number) -> Number:
    """Return E = T_step(p0)/T_step(p), of weak scaling: the same batch on each resource."""
    return above(baseline, "the baseline's step time") / above(step_time, "a step time")


@bounded
def scaled_speedup(efficiency: Number, q: Number) -> Number:
    """Return q E, the speedup of a problem that grew with the resources (Gustafson 1988)."""
    return above(efficiency, "an efficiency") * above(q, "q")


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


def karp_flatt_interval(speedup: Interval, q: float) -> Interval:
    """Return e with the limits that follow from those of S; they change sides, as e falls with S.

    Where S has no upper limit, e has the lower limit of 1/S = 0.
    """
    value = karp_flatt(speedup.value, q)
    if speedup.low is None and speedup.high is None:
        return Interval(value, None, None)
    low = -1 / (q - 1) if speedup.high is None else karp_flatt(speedup.high, q)
    high = karp_flatt(speedup.low, q) if speedup.low else nan
    return Interval(value, *(None if isnan(limit) else limit for limit in (low, high)))


@bounded
def amdahl(q: Number, f: float) -> Number:
    """Return S = 1/(f + (1 - f)/q) of work of which the share f is serial (Amdahl, AFIPS 1967)."""
    _share(f, "Amdahl's f")
    return 1 / (f + (1 - f) / above(q, "q"))


@bounded
def gustafson(q: Number, f: float) -> Number:
    """Return S = q - f (q - 1), f the serial share of the parallel run (Gustafson, CACM 1988).

    It is of weak scaling, and its f is not Amdahl's.
    """
    _share(f, "Gustafson's f'")
    # Not q - f (q - 1): where f is 1 it would leave nothing of a large q.
    return f + (1 - f) * above(q, "q")


@bounded
def usl(q: Number, a: float, b: float, scale: float = 1.0) -> Number:
    """Return L q/(1 + a (q - 1) + b q (q - 1)): Gunther's Universal Scalability Law.

    (N. J. Gunther, Guerrilla Capacity Planning, 2007.) `a` is contention, `b` the cost of keeping
    copies coherent, `scale` the rate L at q = 1. It has no value below 0, where a q under 1 leads.
    """
    for name, value in (("a", a), ("b", b)):
        if not 0 <= value < inf:
            raise ReportError(f"USL's {name} must be 0 or more, not {value:g}")
    q = above(q, "q")
    found: Any = above(scale, "L") * q / (1 + a * (q - 1) + b * q * (q - 1))
    return cast("Number", np.where(found > 0, found, nan))


def usl_peak(a: float, b: float) -> float | None:
    """Return q* = sqrt((1 - a)/b), where USL is highest; None where it rises or falls for ever."""
    usl(1.0, a, b)
    square = (1 - float(a)) / float(b) if b > 0 and 1 - a > b else nan
    return sqrt(square) if usable(square) else None


@bounded
def load_balance(mean: Number, most: Number) -> Number:
    """Return mean/max of the ranks' times: 1 when all work alike (POP Centre of Excellence)."""
    return above(mean, "a mean time") / above(most, "the longest time")


@bounded
def flops_per_token(parameters: float, layers: int, width: int, sequence: int) -> float:
    """Return 6 N + 12 L d s, the FLOPs to train a transformer on one token, without recomputation.

    (Chowdhery et al., PaLM, arXiv 2204.02311, appendix B.) N parameters, L layers of width d,
    sequences of s tokens; attention counts as if it were not causal.
    """
    for name, value in (("parameters", parameters), ("layers", layers), ("sequence", sequence)):
        above(float(value), name)
    return 6 * parameters + 12.0 * layers * above(float(width), "width") * sequence


@bounded
def mfu(rate: Number, flops: float, gpus: Number, peak_flops: float) -> Number:
    """Return X FLOPs/(p peak), the model FLOPs utilisation (PaLM, arXiv 2204.02311).

    `rate` [1/s] and `flops` are of the same thing, a token or a sample; `peak_flops` [FLOP/s] is
    that of one GPU in the precision which was used.
    """
    above(peak_flops, "the peak")
    return above(rate, "a rate") * above(flops, "FLOPs") / (above(gpus, "GPUs") * peak_flops)


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


def _share(value: float, what: str) -> None:
    if not 0 <= value <= 1:
        raise ReportError(f"{what} is a share, from 0 to 1, not {value:g}")
