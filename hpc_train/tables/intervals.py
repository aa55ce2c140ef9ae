"""Intervals for ratios and means of a few jobs; the replicate is the job, never the step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from hpc_train.errors import ReportError

Floats = NDArray[np.float64]
CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A value and its confidence limits; the limits are None where there is no interval."""

    value: float
    low: float | None
    high: float | None


def ratio_interval(
    a: Sequence[float], b: Sequence[float], confidence: float = CONFIDENCE
) -> Interval:
    """Return a/b of two independent samples, with Welch's interval on their logarithms.

    d = mean(ln a) - mean(ln b); exp(d +- t_v sqrt(sa^2/na + sb^2/nb)) with v by
    Welch-Satterthwaite. At 3 to 10 jobs this keeps its level where a bootstrap does not. With one
    value on either side there is no interval. The upper limit is None when it is infinite.

    Raises:
        ReportError: a sample is empty or holds something else than positive finite numbers.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    for sample in (first, second):
        if not sample.size or not bool(np.all(np.isfinite(sample) & (sample > 0))):
            raise ReportError(
                f"a ratio needs positive numbers on both sides, not {sample.tolist()}"
            )
    if min(first.size, second.size) == 1:
        return Interval(float(np.exp(_log_mean(first) - _log_mean(second))), None, None)
    # Two runs that differ by many powers of ten have a limit beyond every number.
    with np.errstate(over="ignore"):
        value, low, high = welch_on_logs(first, second, confidence)
    return Interval(float(value), float(low), float(high) if np.isfinite(high) else None)


def welch_on_logs(a: Floats, b: Floats, confidence: float) -> tuple[Any, Any, Any]:
    """Return value, low and high of a/b along the last axis; see `ratio_interval`."""
    log_a, log_b = np.log(a), np.log(b)
    difference = log_a.mean(-1) - log_b.mean(-1)
    spread_a = log_a.var(-1, ddof=1) / a.shape[-1]
    spread_b = log_b.var(-1, ddof=1) / b.shape[-1]
    total = spread_a + spread_b
    # Without any spread there is no number of degrees of freedom to compute, and no width.
    share = np.divide(spread_a, total, out=np.full_like(total, 0.5), where=total > 0)
    freedom = 1 / (share**2 / (a.shape[-1] - 1) + (1 - share) ** 2 / (b.shape[-1] - 1))
    half = stats.t.ppf((1 + confidence) / 2, freedom) * np.sqrt(total)
    return np.exp(difference), np.exp(difference - half), np.exp(difference + half)


def harmonic_interval(rates: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Return the harmonic mean of rates, with Student's interval of the times 1/rate.

    The upper limit is None when the interval of the times reaches zero.
    """
    times = 1 / np.asarray(rates, dtype=np.float64)
    mean = float(times.mean())
    if times.size == 1:
        return Interval(1 / mean, None, None)
    error = float(times.std(ddof=1)) / float(np.sqrt(times.size))
    half = float(stats.t.ppf((1 + confidence) / 2, times.size - 1)) * error
    return Interval(1 / mean, 1 / (mean + half), 1 / (mean - half) if mean > half else None)


def _log_mean(sample: Floats) -> float:
    return float(np.log(sample).mean())
