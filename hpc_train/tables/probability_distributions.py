"""Quantiles and probabilities of Student's t, F, normal and beta distributions, from scipy.

`scipy.special` is imported when the first one is computed: its import takes a quarter of the time
of a report, and runs without repetitions need none. `scipy.stats` takes a second.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def student_quantile(freedom: Any, probability: Any) -> Any:
    """Return the t below which Student's distribution has a probability; NaN for freedom NaN."""
    if np.isnan(freedom).all():
        return np.full(np.broadcast_shapes(np.shape(freedom), np.shape(probability)), np.nan)
    from scipy.special import stdtrit

    return stdtrit(freedom, probability)


def student_below(freedom: float, t: float) -> float:
    """Return the probability of a value of Student's distribution below t."""
    from scipy.special import stdtr

    return float(stdtr(freedom, t))


def f_above(more: float, freedom: float, ratio: float) -> float:
    """Return the probability of a ratio of variances above `ratio`, with two degrees of freedom."""
    from scipy.special import fdtrc

    return float(fdtrc(more, freedom, ratio))


def normal_below(score: float) -> float:
    """Return the probability of a standard normal value below `score`."""
    from scipy.special import ndtr

    return float(ndtr(score))


def beta_below(a: float, b: float, x: float) -> float:
    """Return the probability of a value of the beta distribution (a, b) below x."""
    from scipy.special import betainc

    return float(betainc(a, b, x))
