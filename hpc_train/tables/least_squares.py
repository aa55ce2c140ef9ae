"""A law of scaling that is linear in its coefficients -> its solution by least squares.

Squares of relative residuals are least, and no coefficient is below 0 (C. L. Lawson and R. J.
Hanson, Solving Least Squares Problems, Prentice-Hall 1974, chapter 23). `scaling_fits` describes
the coefficients of each law.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from hpc_train.model.scaling_fit import Law
from hpc_train.tables.confidence_intervals import CONFIDENCE, fieller_limits, students_t
from hpc_train.tables.group_reductions import Floats

# Digits beyond the sixth are not significant: a perfect fit by chance gives no bounds.
LEAST_SCATTER = 1e-6


class Solution(NamedTuple):
    """Coefficients, their covariance, Student's t of the interval, and the relative residuals.

    `rms` is the root mean square of the residuals.
    """

    law: Law
    c: Floats
    covariance: Floats
    t: float
    residuals: Floats
    rms: float


def _not_negative(columns: Floats, inverse: Floats, wanted: Floats) -> Floats:
    """Return the coefficients of 0 or above with the least squares.

    They are the plain solution for those that are above 0; `inverse` is the pseudo-inverse of all
    columns. A law has three at most, so that each choice of them is tried, unless all are clearly
    above 0; the import of scipy.optimize takes longer than a whole report.
    """
    count = columns.shape[1]
    every: Floats = inverse @ wanted
    if every.min() > LEAST_SCATTER * every.max():
        return every
    best, least = np.zeros(count), float(wanted @ wanted)
    for size in range(1, count + 1):
        for chosen in map(list, combinations(range(count), size)):
            found = every if size == count else _plain(columns[:, chosen], wanted)
            rest = wanted - columns[:, chosen] @ found
            if (found >= 0).all() and float(rest @ rest) < least:
                best, least = np.zeros(count), float(rest @ rest)
                best[chosen] = found
    return best


def _plain(columns: Floats, wanted: Floats) -> Floats:
    if columns.shape[1] == 1:
        # The columns have the length 1.
        found: Floats = wanted @ columns
        return found
    return np.asarray(np.linalg.lstsq(columns, wanted, rcond=None)[0], dtype=np.float64)


def basis(law: Law, q: Floats) -> Floats:
    """Return the design matrix of a law, a row for each size."""
    columns = [np.ones_like(q), q - 1, q * (q - 1)] if law == "usl" else [np.ones_like(q), q]
    return np.stack(columns, axis=-1)


def solve(law: Law, q: Floats, speedup: Floats, runs: Floats | None = None) -> Solution:
    """Minimise the relative residuals with all coefficients at 0 or above.

    `runs` is the number of runs of each point: the variance of their mean is inverse to it.
    """
    target = speedup if law == "gustafson" else q / speedup
    weight = np.ones_like(q) if runs is None else np.sqrt(runs / runs.mean())
    relative = basis(law, q) / target[:, np.newaxis]
    weighted = relative * weight[:, np.newaxis]
    # Columns are normalised: q (q - 1) may be a million times 1 on a large machine.
    length = np.linalg.norm(weighted, axis=0)
    columns = weighted / length
    inverse = np.linalg.pinv(columns)
    c = _not_negative(columns, inverse, weight) / length
    freedom = len(q) - len(c)
    residuals = relative @ c - 1
    scatter = max(float(np.linalg.norm(weight * residuals) / np.sqrt(freedom)), LEAST_SCATTER)
    covariance = scatter**2 * (inverse @ inverse.T) / np.outer(length, length)
    t = _t_of(freedom)
    rms = float(np.sqrt(np.mean(residuals**2)))
    return Solution(law, c, covariance, t, residuals, rms)


# Most series have the same number of sizes.
@cache
def _t_of(freedom: int) -> float:
    return float(students_t(freedom, CONFIDENCE))


def ratio(solved: Solution, over: Any, under: Any) -> tuple[float, float | None, float | None]:
    """Return the ratio of two sums of coefficients, with Fieller's limits, none of them below 0."""
    u, v = np.asarray(over, dtype=np.float64), np.asarray(under, dtype=np.float64)
    c, covariance = solved.c, solved.covariance
    variances = (u @ covariance @ u, v @ covariance @ v, u @ covariance @ v)
    low, high = (float(x) for x in fieller_limits(u @ c, v @ c, variances, solved.t))
    if not np.isfinite(high):
        return float(u @ c / (v @ c)), None, None
    return float(u @ c / (v @ c)), max(low, 0.0), max(high, 0.0)


def half_width(solved: Solution, sums: Floats) -> Floats:
    """Return the half widths of intervals of sums of coefficients."""
    variance = np.einsum("...j,jk,...k->...", sums, solved.covariance, sums)
    # Rounding can make the variance of an exactly known sum slightly negative.
    half: Floats = solved.t * np.sqrt(np.maximum(variance, 0.0))
    return half
