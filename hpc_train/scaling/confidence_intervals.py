"""Intervals for ratios and means of a few jobs; the replicate is the job, never the step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpc_train.scaling.record_arrays import LEAST, NAN, Floats, Ints, Mask, Moments, known, moments
from hpc_train.scaling.report_options import CONFIDENCE

# Relative spread below which repeated values are the same number, up to the rounding of their mean.
_EQUAL = 1e-12
# Sums of the same numbers in different orders differ by less.
ROUNDING = 1e-9


class Interval(NamedTuple):
    """A value and its confidence limits; the limits are None without an interval."""

    value: float
    low: float | None
    high: float | None


class IntervalArrays(NamedTuple):
    """Many values with their limits; NaN if there is none."""

    value: Floats
    low: Floats
    high: Floats


def students_t(freedom: Any, confidence: float | Floats) -> Any:
    """Return t such that a share `confidence` of the distribution is within -t and t.

    NaN where there are no degrees of freedom.
    """
    known = np.where(np.asarray(freedom) > 0, freedom, NAN)
    if np.isnan(known).all():
        return np.full(np.broadcast_shapes(np.shape(known), np.shape(confidence)), NAN)
    from scipy.special import stdtrit

    return stdtrit(known, (1 + np.asarray(confidence)) / 2)


def ratio_interval(
    a: Sequence[float], b: Sequence[float], confidence: float = CONFIDENCE
) -> Interval:
    """Return a/b of two independent samples, with Welch's interval on their logarithms.

    For 3 to 10 jobs its coverage is correct. With one value on either side, or only equal values on
    both, there is no interval. The upper limit is None when it is beyond all sizes
    (`LEAST`, `MOST`); the ratio is NaN then.
    """
    first, second = (Moments.along_axis(np.log(sample)) for sample in (a, b))
    value, low, high = (float(one) for one in welch(first, second, confidence))
    return Interval(value, *(None if np.isnan(limit) else limit for limit in (low, high)))


def welch(a: Moments, b: Moments, confidence: float | Floats) -> IntervalArrays:
    """Return a/b from moments of logarithms, with Welch's interval.

    d = mean(ln a) - mean(ln b); exp(d +- t_v sqrt(sa^2/na + sb^2/nb)) with v by
    Welch-Satterthwaite; no limits where a side has one value, or where all values of each side are
    equal: the spread was then not measured. No upper limit where it is beyond all sizes
    (`LEAST`, `MOST`).
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        difference = a.mean - b.mean
        spread_a, spread_b = _measured(a.variance / a.number, b.variance / b.number)
        half = students_t(_freedom(spread_a, spread_b, a, b), confidence) * np.sqrt(
            spread_a + spread_b
        )
        limits = (np.exp(difference), np.exp(difference - half), np.exp(difference + half))
    return _within(IntervalArrays(*limits))


def means(times: Moments, confidence: float) -> IntervalArrays:
    """Return arithmetic means of times with Student's limits of their logarithm.

    mean exp(+- t s / (mean sqrt(n))): by the delta method the logarithm of a mean has the standard
    error s / (mean sqrt(n)). No limit is below zero. No limits for one value or equal values.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        relative, _ = _measured(times.variance / times.number / times.mean**2, 0.0)
        factor = np.exp(students_t(times.number - 1, confidence) * np.sqrt(relative))
        limits = (times.mean / factor, times.mean * factor)
    return _within(IntervalArrays(times.mean, *limits))


def harmonic_means(times: Moments, confidence: float) -> IntervalArrays:
    """Return 1/mean(1/x) of rates from the moments of 1/x, with the limits of that mean."""
    with np.errstate(divide="ignore", invalid="ignore"):
        value, low, high = (1 / limit for limit in means(times, confidence))
    return _within(IntervalArrays(value, high, low))


def noise_limit(a: Moments, b: Moments, confidence: float) -> Floats:
    """Return the largest |mean(a) - mean(b)| that noise explains, from moments of two samples.

    t_v sqrt(sa^2/na + sb^2/nb) with Student's t, v by Welch-Satterthwaite; NaN where a side has
    fewer than two values, or where all values of each side are equal.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scale = np.maximum(np.abs(a.mean), np.abs(b.mean))
        spread_a, spread_b = _measured(
            a.variance / a.number / scale**2, b.variance / b.number / scale**2
        )
        t = students_t(_freedom(spread_a, spread_b, a, b), confidence)
        limit: Floats = t * np.sqrt(spread_a + spread_b) * scale
    return limit


def corrected(confidence: float, tests: int) -> float:
    """Return the level of each of several tests, so that their common level is `confidence`.

    (C. E. Bonferroni, 1936: 1 - (1 - confidence)/m, whether the tests are independent or not.)
    """
    return 1 - (1 - confidence) / max(tests, 1)


def step_down(
    limits: Callable[[Floats], IntervalArrays], size: int, tests: int, confidence: float
) -> tuple[IntervalArrays, Floats]:
    """Return the limits of `size` ratios and their levels; `limits` has those of given levels.

    The level is 1 - (1 - confidence)/m for the m of `tests` comparisons that are undecided. A ratio
    whose interval excludes 1 is decided at that level and leaves, until none leaves (S. Holm,
    Scandinavian Journal of Statistics 6, 1979, 65-70).
    """
    level, decided = np.full(size, corrected(confidence, tests)), np.zeros(size, dtype=bool)
    while True:
        found = limits(level)
        apart = (found.low > 1 + ROUNDING) | (found.high < 1 - ROUNDING)
        if not (apart & ~decided).any():
            return found, np.where(np.isnan(found.low), NAN, level)
        decided |= apart
        level[~decided] = corrected(confidence, tests - int(decided.sum()))


def divided(limits: IntervalArrays, by: Floats) -> IntervalArrays:
    """Return values with limits, each divided by a number that is known exactly."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return _within(IntervalArrays(*(limit / by for limit in limits)))


def _within(found: IntervalArrays) -> IntervalArrays:
    """Drop limits outside the range of measurements; a lower limit below it becomes 0."""
    none = np.isnan(known(found.value))
    low = np.where(np.abs(found.low) < LEAST, 0.0, known(found.low))
    return IntervalArrays(
        *(np.where(none, NAN, one) for one in (found.value, low, known(found.high)))
    )


def _measured(spread_a: Any, spread_b: Any) -> tuple[Any, Any]:
    """Return two relative variances; NaN where neither is above rounding: no spread was measured.

    Equal repetitions are copies, or were printed with too few digits; their noise is unknown.
    """
    known = np.maximum(spread_a, spread_b) > _EQUAL**2
    return np.where(known, spread_a, NAN), np.where(known, spread_b, NAN)


def _freedom(spread_a: Floats, spread_b: Floats, a: Moments, b: Moments) -> Floats:
    """Return the degrees of freedom of a sum of two variances (Welch 1947, Satterthwaite 1946)."""
    share = spread_a / (spread_a + spread_b)
    return 1 / (share**2 / (a.number - 1) + (1 - share) ** 2 / (b.number - 1))


def f_above(more: float, freedom: float, ratio: float) -> float:
    """Return the probability of a ratio of variances above `ratio`, with two degrees of freedom."""
    from scipy.special import fdtrc

    return float(fdtrc(more, freedom, ratio))


class Differences(NamedTuple):
    """Moments of the differences of each point from another one, and whether they may be used.

    `complete`: each run of both points with a value is in a pair.
    """

    moments: Moments
    complete: Mask

    def ratio(self, confidence: float | Floats) -> IntervalArrays:
        """Return the ratios, with Student's interval of n - 1 degrees of freedom."""
        size = len(self.complete)
        exactly_one = Moments(np.full(size, np.inf), np.zeros(size), np.zeros(size))
        return welch(self.moments, exactly_one, confidence)

    def of(self, points: Ints) -> Differences:
        """Return those of some points, in that order."""
        return Differences(self.moments.of(points), self.complete[points])

    def instead_of(self, independent: IntervalArrays, confidence: float | Floats) -> IntervalArrays:
        """Return the paired ratios, where there are none those of `independent` samples."""
        limits = zip(self.ratio(confidence), independent, strict=True)
        return IntervalArrays(*(np.where(self.complete, *each) for each in limits))

    def inverse(self) -> Differences:
        """Return the differences of the other point from each point."""
        number, mean, variance = self.moments
        return Differences(Moments(number, -mean, variance), self.complete)


def block_codes(runs: pd.DataFrame) -> Ints:
    """Return the number of the block of each run, -1 if it is not known."""
    if "block" not in runs:
        return np.full(len(runs), -1, dtype=np.int64)
    codes, names = pd.factorize(runs["block"])
    number = [-1 if name == "" else place for place, name in enumerate(names)]
    return np.array([*number, -1], dtype=np.int64)[codes]


def differences(logs: Floats, point: Ints, block: Ints, other: Ints) -> Differences:
    """Return the differences of points from their `other` points, from logarithms of runs.

    `logs`, `point` and `block` have a value for each run (NaN and -1 if unknown), `other` has one
    for each point (-1 without).
    """
    size = len(other)
    valued = ~np.isnan(logs)
    known = np.flatnonzero(valued & (block >= 0))
    if not len(known):
        none = np.full(size, NAN)
        return Differences(Moments(np.zeros(size), none, none), np.zeros(size, dtype=np.bool_))
    width = int(block.max(initial=0)) + 1
    keys, first, twice = np.unique(
        point[known] * width + block[known], return_index=True, return_counts=True
    )
    wanted = other[point[known]]
    place = np.searchsorted(keys, wanted * width + block[known])
    place = np.minimum(place, max(len(keys) - 1, 0))
    paired = np.zeros(len(known), dtype=bool)
    if len(keys):
        paired = (wanted >= 0) & (keys[place] == wanted * width + block[known])
        paired &= twice[place] == 1
    change = np.full(len(logs), NAN)
    pairs = known[paired]
    change[pairs] = logs[pairs] - logs[known[first[place[paired]]]]
    found = moments(change, point, size)
    number = np.bincount(point[valued], minlength=size)
    complete = (found.number > 0) & (found.number == number) & (other >= 0)
    complete &= found.number == np.append(number, -1)[other]
    return Differences(found, complete)
