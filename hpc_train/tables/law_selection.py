"""Residuals of the laws of a series, and the noise between its runs -> the law that is shown.

With repetitions, an F test of lack of fit decides whether a law fits; without them, the residual
does. Of several laws that fit, the one with the lowest AICc is shown.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hpc_train.model.scaling_fit import LAW_NAMES, Fit
from hpc_train.tables.group_reductions import Floats
from hpc_train.tables.least_squares import LEAST_SCATTER, Solution
from hpc_train.tables.probability_distributions import f_above

LEVEL = 0.05
# Without repetitions, a larger residual is not taken for noise.
MOST_RESIDUAL = 0.1
# Squares of larger numbers are not needed to refuse a law.
_MOST = 1e100


class Noise(NamedTuple):
    """Runs of each point, and the noise between them: relative sum of squares and its freedom."""

    runs: Floats
    squares: float
    freedom: float

    @property
    def is_measured(self) -> bool:
        """Whether there are repetitions; equal digits in each of them are no noise."""
        return self.freedom > 0 and self.squares > self.freedom * LEAST_SCATTER**2

    @property
    def relative(self) -> float:
        """The standard deviation between runs of a point, relative to their mean."""
        return float(np.sqrt(self.squares / self.freedom)) if self.freedom > 0 else float("nan")


def noise_of(runs: Floats, variation: Floats) -> Noise:
    """Return the noise between the runs of some points, from their columns `n_ok` and `cv`."""
    runs = np.maximum(np.nan_to_num(runs, nan=1.0), 1.0)
    variation = np.minimum(variation, _MOST)
    known = (runs > 1) & ~np.isnan(variation)
    squares = float(np.sum((runs[known] - 1) * variation[known] ** 2))
    return Noise(runs, squares, float(np.sum(runs[known] - 1)))


def lack_of_fit(solved: Solution, noise: Noise) -> float | None:
    """Return the probability p of residuals this large if the law holds; None without repetitions.

    F = (sum n r^2/(m - k))/(sum (n - 1) s^2/(N - m)) for m points of n runs, N in all, residuals r,
    relative standard deviations s between runs, and k coefficients; p is the upper tail of F with
    m - k and N - m degrees of freedom (N. R. Draper and H. Smith, Applied Regression Analysis,
    Wiley 1998, section 2.1).
    """
    freedom = len(solved.residuals) - len(solved.c)
    if not noise.is_measured or freedom < 1:
        return None
    squares = float(np.sum(noise.runs * np.minimum(np.abs(solved.residuals), _MOST) ** 2))
    ratio = (squares / freedom) / (noise.squares / noise.freedom)
    return f_above(freedom, noise.freedom, min(ratio, _MOST))


def aicc(solved: Solution, noise: Noise) -> float | None:
    """Return N ln(R/N) + 2 k + 2 k (k + 1)/(N - k - 1); None if N is k + 1 or less.

    R is the residual sum of squares of N runs (of N points without repetitions), k the number of
    coefficients and one for the variance (C. M. Hurvich and C.-L. Tsai, Biometrika 76, 1989).
    """
    runs = noise.runs if noise.is_measured else np.ones_like(noise.runs)
    within = noise.squares if noise.is_measured else 0.0
    squares = within + float(np.sum(runs * np.minimum(np.abs(solved.residuals), _MOST) ** 2))
    n, k = float(runs.sum()), len(solved.c) + 1
    if n <= k + 1:
        return None
    # Digits beyond the sixth are no evidence for a law.
    variance = max(squares / n, LEAST_SCATTER**2)
    return float(n * np.log(variance) + 2 * k + 2 * k * (k + 1) / (n - k - 1))


def misfit(solved: Solution, noise: Noise) -> str:
    """Return why a law does not fit; empty if it does."""
    p, shown = lack_of_fit(solved, noise), f"residual {100 * solved.rms:.2g} %"
    if p is None:
        limit = f"more than {100 * MOST_RESIDUAL:g} %, without repetitions"
        return f"does not fit: {shown}, {limit}" if solved.rms > MOST_RESIDUAL else ""
    if p >= LEVEL:
        return ""
    small = f"p {p:.1g}" if p >= 0.001 else "p < 0.001"
    return f"does not fit: {shown}, {100 * noise.relative:.2g} % between runs (F test, {small})"


def selected(fits: tuple[Fit, ...]) -> tuple[Fit, ...]:
    """Refuse each law of a series that fits, but has a higher AICc than another one."""
    known = [fit for fit in fits if not fit.refused]
    if len(known) < 2:
        return fits
    # The first one of equal ones has fewer coefficients.
    best = min(known, key=lambda fit: np.inf if fit.aicc is None else fit.aicc)
    return tuple(fit if fit is best or fit.refused else _second(fit, best) for fit in fits)


def _second(fit: Fit, best: Fit) -> Fit:
    by = "" if None in (fit.aicc, best.aicc) else f" by {(fit.aicc or 0) - (best.aicc or 0):.2g}"
    why = f"{LAW_NAMES[best.law]} has a lower AICc{by}"
    return Fit(
        series=fit.series,
        law=fit.law,
        points=fit.points,
        largest_q=fit.largest_q,
        rms=fit.rms,
        lack_of_fit_p=fit.lack_of_fit_p,
        aicc=fit.aicc,
        refused=why,
    )
