"""Moments of many points -> ratios and means with their limits, all points at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hpc_train.tables.intervals import fieller_limits, freedom
from hpc_train.tables.magnitudes import LEAST, known
from hpc_train.tables.moments import Floats, Moments
from hpc_train.tables.steps import NAN
from hpc_train.tables.students_t import students_t


class Limits(NamedTuple):
    """Values with their limits; NaN where there is none."""

    value: Floats
    low: Floats
    high: Floats


def ratios(a: Moments, b: Moments, confidence: float) -> Limits:
    """Return a/b from moments of logarithms: what `intervals.ratio_interval` does for one pair.

    d = mean(ln a) - mean(ln b); exp(d +- t_v sqrt(sa^2/na + sb^2/nb)) with v by
    Welch-Satterthwaite; no limits where a side has one value, no upper one where it is beyond all
    sizes (`magnitudes`).
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        difference = a.mean - b.mean
        spread_a, spread_b = a.variance / a.number, b.variance / b.number
        spread = spread_a + spread_b
        # Without any spread there is no number of degrees of freedom to compute, and no width.
        share = np.where(spread > 0, spread_a / spread, np.where(spread == 0, 0.5, NAN))
        freedom = 1 / (share**2 / (a.number - 1) + (1 - share) ** 2 / (b.number - 1))
        half = _students_t(freedom, confidence) * np.sqrt(spread)
        limits = (np.exp(difference), np.exp(difference - half), np.exp(difference + half))
    return _within(Limits(*limits))


def fiellers(a: Moments, b: Moments, confidence: float) -> Limits:
    """Return mean(a)/mean(b) from moments: what `intervals.fieller_interval` does for one pair.

    No limits where a side has one value, or where mean(b) cannot be told from zero. Computed
    relative to the means, so that neither large nor small numbers leave the range.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = a.mean / b.mean
        spread_a = a.variance / a.number / a.mean**2
        spread_b = b.variance / b.number / b.mean**2
        t = students_t(freedom(spread_a, spread_b, a.number, b.number), confidence)
        low, high = fieller_limits(1.0, 1.0, (spread_a, spread_b, 0.0), t)
        limits = [np.where(np.isfinite(limit), value * limit, NAN) for limit in (low, high)]
    return _within(Limits(value, *limits))


def shared(limits: Limits, by: Floats) -> Limits:
    """Return values with limits, each divided by a number that is known exactly."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return _within(Limits(*(limit / by for limit in limits)))


def _within(found: Limits) -> Limits:
    """Leave out what is beyond all sizes; the lower limit is 0 where it is below them."""
    none = np.isnan(known(found.value))
    low = np.where(np.abs(found.low) < LEAST, 0.0, known(found.low))
    return Limits(*(np.where(none, NAN, one) for one in (found.value, low, known(found.high))))


def means(times: Moments, confidence: float) -> Limits:
    """Return arithmetic means of times with Student's limits; no limits for one value.

    There is no lower limit where the interval reaches zero: no time is below it.
    """
    half = _half(times, confidence)
    low = np.where(times.mean > half, times.mean - half, NAN)
    return _within(Limits(times.mean, low, times.mean + half))


def harmonic_means(times: Moments, confidence: float) -> Limits:
    """Return 1/mean(1/x) of rates from the moments of 1/x: `intervals.harmonic_interval` for many.

    There is no upper limit where the interval of the times reaches zero.
    """
    half = _half(times, confidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        high = np.where(times.mean > half, 1 / (times.mean - half), NAN)
        return _within(Limits(1 / times.mean, 1 / (times.mean + half), high))


def _half(sample: Moments, confidence: float) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(sample.variance / sample.number)
        return _students_t(sample.number - 1, confidence) * error


def _students_t(freedom: Floats, confidence: float) -> Floats:
    known = np.where(freedom > 0, freedom, NAN)
    quantile: Floats = students_t(known, confidence)
    return quantile
