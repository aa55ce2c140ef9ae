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


def f_above(more: float, freedom: float, ratio: float) -> float:
    """Return the probability of a ratio of variances above `ratio`, with two degrees of freedom."""
    from scipy.special import fdtrc

    return float(fdtrc(more, freedom, ratio))
