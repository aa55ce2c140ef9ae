"""Intervals for ratios and means of a few jobs; the replicate is the job, never the step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpc_train.errors import ReportError
from hpc_train.tables.magnitudes import LEAST, MOST, usable
from hpc_train.tables.students_t import students_t

Floats = NDArray[np.float64]
CONFIDENCE = 0.95
# Below these, resampling few values again and again gives intervals that are too narrow.
LEAST_FOR_MEAN, LEAST_FOR_MEDIAN = 20, 5
BOOTSTRAP_SEED, RESAMPLES = 20260101, 4000
Statistic = Literal["mean", "median"]


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
    value on either side there is no interval. The upper limit is None when it is beyond all sizes
    (`magnitudes`); the ratio is NaN then.

    Raises:
        ReportError: a sample is empty, or a number is not of a size that a measurement has.
    """
    first, second = _positive(a), _positive(b)
    if min(first.size, second.size) == 1:
        return _interval(np.exp(_log_mean(first) - _log_mean(second)))
    # Two runs that differ by many powers of ten have a limit beyond every number.
    with np.errstate(over="ignore"):
        return _interval(*welch_on_logs(first, second, confidence))


def welch_on_logs(a: Floats, b: Floats, confidence: float) -> tuple[Any, Any, Any]:
    """Return value, low and high of a/b along the last axis; see `ratio_interval`."""
    log_a, log_b = np.log(a), np.log(b)
    difference = log_a.mean(-1) - log_b.mean(-1)
    spread_a = log_a.var(-1, ddof=1) / a.shape[-1]
    spread_b = log_b.var(-1, ddof=1) / b.shape[-1]
    degrees = freedom(spread_a, spread_b, a.shape[-1], b.shape[-1])
    half = students_t(degrees, confidence) * np.sqrt(spread_a + spread_b)
    return np.exp(difference), np.exp(difference - half), np.exp(difference + half)


def fieller_interval(
    a: Sequence[float], b: Sequence[float], confidence: float = CONFIDENCE
) -> Interval:
    """Return mean(a)/mean(b) of two independent samples, with Fieller's interval.

    All R for which |mean(a) - R mean(b)| <= t_v sqrt(sa^2/na + R^2 sb^2/nb) (E. C. Fieller, J. R.
    Stat. Soc. B 16, 1954), v by Welch-Satterthwaite at the ratio found. No interval with one value
    on either side; no limits where mean(b) cannot be told from zero.

    Raises:
        ReportError: a sample is empty, or a number is not of a size that a measurement has.
    """
    first, second = _positive(a), _positive(b)
    if min(first.size, second.size) == 1:
        return _interval(first.mean() / second.mean())
    return _interval(*fieller(first, second, confidence))


def fieller(a: Floats, b: Floats, confidence: float) -> tuple[Any, Any, Any]:
    """Return value, low and high of a/b along the last axis; see `fieller_interval`."""
    mean_a, mean_b = a.mean(-1), b.mean(-1)
    # Relative to the means: products of four large numbers are none.
    relative = (a / mean_a[..., np.newaxis], b / mean_b[..., np.newaxis])
    var_a, var_b = (one.var(-1, ddof=1) / one.shape[-1] for one in relative)
    t = students_t(freedom(var_a, var_b, a.shape[-1], b.shape[-1]), confidence)
    value = mean_a / mean_b
    low, high = fieller_limits(np.ones_like(value), 1.0, (var_a, var_b, 0.0), t)
    return value, value * low, value * high


def fieller_limits(a: Any, b: Any, variances: tuple[Any, Any, Any], t: Any) -> tuple[Any, Any]:
    """Return the limits of a/b for estimates with variances (of a, of b, covariance).

    They are infinite where b is less than t standard errors from zero: no ratio is excluded then.
    """
    var_a, var_b, both = variances
    bound = b**2 - t**2 * var_b
    # The discriminant, multiplied out so that large numbers of equal size never cancel.
    inner = b**2 * var_a + a**2 * var_b - 2 * a * b * both - t**2 * (var_a * var_b - both**2)
    root = t * np.sqrt(np.maximum(inner, 0.0))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        low, high = (a * b - t**2 * both - root) / bound, (a * b - t**2 * both + root) / bound
    return np.where(bound > 0, low, -np.inf), np.where(bound > 0, high, np.inf)


def bootstrap_interval(
    a: Sequence[float],
    b: Sequence[float],
    statistic: Statistic = "median",
    *,
    confidence: float = CONFIDENCE,
    seed: int = BOOTSTRAP_SEED,
) -> Interval:
    """Return the ratio of two medians or means, with its percentile bootstrap interval.

    (B. Efron, Ann. Stat. 7, 1979.) The same seed gives the same interval. Of means with few jobs it
    is too narrow: 81 % instead of 95 % contain the truth with 3 jobs, so that it is refused.

    Raises:
        ReportError: too few jobs, or a number is not of a size that a measurement has.
    """
    first, second = _positive(a), _positive(b)
    least = LEAST_FOR_MEAN if statistic == "mean" else LEAST_FOR_MEDIAN
    fewest = min(first.size, second.size)
    if fewest < least:
        raise ReportError(
            f"a bootstrap of {statistic}s takes {least} jobs on each side, there are {fewest}",
            "the default interval (Welch on logarithms) takes two",
        )
    return _interval(*bootstrap(first, second, statistic, confidence, seed))


def bootstrap(
    a: Floats, b: Floats, statistic: Statistic, confidence: float, seed: int
) -> tuple[Any, Any, Any]:
    """Return value, low and high of a/b along the last axis; see `bootstrap_interval`."""
    random = np.random.default_rng(seed)
    reduce = np.mean if statistic == "mean" else np.median
    samples = []
    for sample in (a, b):
        drawn = random.integers(sample.shape[-1], size=(RESAMPLES, sample.shape[-1]))
        samples.append(reduce(sample[..., drawn], axis=-1))
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    low, high = np.quantile(samples[0] / samples[1], tails, axis=-1)
    return reduce(a, axis=-1) / reduce(b, axis=-1), low, high


def harmonic_interval(rates: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Return the harmonic mean of rates, with Student's interval of the times 1/rate.

    The upper limit is None when the interval of the times reaches zero.
    """
    times = 1 / _positive(rates)
    mean = float(times.mean())
    if times.size == 1:
        return _interval(1 / mean)
    error = float(times.std(ddof=1)) / float(np.sqrt(times.size))
    half = float(students_t(times.size - 1, confidence)) * error
    return _interval(1 / mean, 1 / (mean + half), 1 / (mean - half) if mean > half else np.nan)


def freedom(spread_a: Any, spread_b: Any, n_a: Any, n_b: Any) -> Any:
    """Return the degrees of freedom of a sum of two variances (Welch 1947, Satterthwaite 1946)."""
    total = np.asarray(spread_a + spread_b)
    # Without any spread there is no number of degrees of freedom to compute, and no width.
    share = np.divide(spread_a, total, out=np.full_like(total, 0.5), where=total > 0)
    return 1 / (share**2 / (n_a - 1) + (1 - share) ** 2 / (n_b - 1))


def _interval(value: Any, *limits: Any) -> Interval:
    """Return an interval without what is beyond all sizes, below 0 or not a number."""
    if not usable(value):
        return Interval(float("nan"), None, None)
    low, high = limits or (np.nan, np.nan)
    return Interval(
        float(value),
        float(low) if np.isfinite(low) else None,
        float(high) if usable(high) else None,
    )


def _positive(values: Sequence[float]) -> Floats:
    sample = np.asarray(values, dtype=np.float64)
    if not sample.size or not bool(np.all(usable(sample) & (sample > 0))):
        raise ReportError(
            f"a ratio needs positive numbers, {LEAST:g} to {MOST:g}, not {sample.tolist()}"
        )
    return sample


def _log_mean(sample: Floats) -> float:
    return float(np.log(sample).mean())
