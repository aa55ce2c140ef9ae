"""A law of scaling that is linear in its coefficients -> its solution by least squares.

Squares of relative residuals are least, and no coefficient is below 0 (Lawson and Hanson's NNLS).
`fits` describes the coefficients of each law.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hpc_train.model.scaling_fit import Law
from hpc_train.tables.confidence_intervals import CONFIDENCE, fieller_limits, students_t
from hpc_train.tables.group_reductions import Floats

# Digits beyond the sixth are not significant: a perfect fit by chance gives no bounds.
LEAST_SCATTER = 1e-6


class Solution(NamedTuple):
    """Coefficients, their covariance, Student's t of the interval, and the residuals' size."""

    law: Law
    c: Floats
    covariance: Floats
    t: float
    rms: float


def basis(law: Law, q: Floats) -> Floats:
    """Return the design matrix of a law, a row for each size."""
    columns = [np.ones_like(q), q - 1, q * (q - 1)] if law == "usl" else [np.ones_like(q), q]
    return np.stack(columns, axis=-1)


def solve(law: Law, q: Floats, speedup: Floats) -> Solution:
    """Minimise the relative residuals with all coefficients at 0 or above."""
    from scipy.optimize import nnls

    target = speedup if law == "gustafson" else q / speedup
    weighted = basis(law, q) / target[:, np.newaxis]
    # Columns are normalised: q (q - 1) may be a million times 1 on a large machine.
    length = np.linalg.norm(weighted, axis=0)
    c = nnls(weighted / length, np.ones_like(q))[0] / length
    freedom = len(q) - len(c)
    residuals = weighted @ c - 1
    scatter = max(float(np.sqrt(residuals @ residuals / freedom)), LEAST_SCATTER)
    inverse = np.linalg.pinv(weighted / length)
    covariance = scatter**2 * (inverse @ inverse.T) / np.outer(length, length)
    t = float(students_t(freedom, CONFIDENCE))
    return Solution(law, c, covariance, t, float(np.sqrt(np.mean(residuals**2))))


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
