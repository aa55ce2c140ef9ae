"""Rates of runs -> ratios of their points, with the interval that was asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from hpc_train.model.measurement import IntervalKind
from hpc_train.tables.intervals import BOOTSTRAP_SEED, LEAST_FOR_MEAN, bootstrap
from hpc_train.tables.moments import Codes, Floats, Moments, moments
from hpc_train.tables.ratios import Limits, fiellers, ratios
from hpc_train.tables.steps import NAN


class Samples(NamedTuple):
    """The rates of the runs, for each basis, and the point of each run; `basis` is each point's.

    `of_basis` are moments of logarithms for Welch's interval, of times (1/rate) for the others.
    """

    rates: tuple[Floats, ...]
    point: Codes
    basis: Codes
    interval: IntervalKind
    of_basis: tuple[Moments, ...]

    def of(self, points: Codes) -> Moments:
        """Return those of other points, each in the basis of the point that it stands beside."""
        each = [own.of(points) for own in self.of_basis]
        return Moments(*(np.choose(self.basis, columns) for columns in zip(*each, strict=True)))

    def ratio(self, other: Codes, confidence: float) -> Limits:
        """Return how many times as fast each point is as the other that stands beside it."""
        own, theirs = self.of(np.arange(len(self.basis))), self.of(other)
        if self.interval == "welch":
            return ratios(own, theirs, confidence)
        if self.interval == "fieller":
            return fiellers(theirs, own, confidence)
        return self._resampled(other, theirs.mean / own.mean, confidence)

    def fewest(self, others: Iterable[Codes]) -> Floats:
        """Return on how few runs a side of a point's ratios to others rests; NaN without any."""
        every = np.arange(len(self.basis))
        own, least = self.of(every).number, np.full(len(every), np.inf)
        for other in others:
            pair = np.minimum(own, self.of(other).number)
            least = np.where((pair > 0) & (other != every), np.minimum(least, pair), least)
        return np.where(np.isinf(least), NAN, least)

    def _resampled(self, other: Codes, value: Floats, confidence: float) -> Limits:
        low, high = np.full((2, len(value)), NAN)
        enough = np.minimum(self.of(np.arange(len(value))).number, self.of(other).number)
        for point in np.flatnonzero((enough >= LEAST_FOR_MEAN) & ~np.isnan(value)).tolist():
            rates = self.rates[self.basis[point]]
            times, base = (1 / _known(rates[self.point == p]) for p in (point, other[point]))
            found = bootstrap(base, times, "mean", confidence, BOOTSTRAP_SEED)
            low[point], high[point] = found[1:]
        return Limits(value, low, high)


def samples(rates: Iterable[Floats], point: Codes, basis: Codes, interval: IntervalKind) -> Samples:
    """Return the samples of points from the rates of runs by basis; NaN is no rate."""
    each, size = tuple(rates), len(basis)
    scaled = [np.log(rate) if interval == "welch" else 1 / rate for rate in each]
    of_basis = tuple(moments(values, point, size) for values in scaled)
    return Samples(each, point, basis, interval, of_basis)


def _known(values: Floats) -> Floats:
    found: Floats = values[~np.isnan(values)]
    return found
