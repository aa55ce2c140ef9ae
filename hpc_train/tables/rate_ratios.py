"""Rates of runs -> ratios of their points, with the requested interval."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from hpc_train.model.expected_study import IntervalKind
from hpc_train.tables.confidence_intervals import (
    LEAST_FOR_MEAN,
    IntervalArrays,
    bootstrap,
    fieller,
    welch,
)
from hpc_train.tables.group_reductions import NAN, Floats, Moments, moments
from hpc_train.tables.paired_runs import Differences, block_codes, of_bases
from hpc_train.tables.points import Grouped
from hpc_train.tables.record_arrays import Ints


class Samples(NamedTuple):
    """The rates of the runs, for each basis, and the point of each run; `basis` is each point's.

    `of_basis` are moments of logarithms for Welch's interval, of times (1/rate) for the others.
    `block` is the block of each run, -1 if it is not known.
    """

    rates: tuple[Floats, ...]
    point: Ints
    block: Ints
    basis: Ints
    interval: IntervalKind
    of_basis: tuple[Moments, ...]

    def of(self, points: Ints) -> Moments:
        """Return the samples of other points, each in the basis of the point that it is compared "
        "with."""
        each = [own.of(points) for own in self.of_basis]
        return Moments(*(np.choose(self.basis, columns) for columns in zip(*each, strict=True)))

    def ratio(self, other: Ints, level: Floats) -> IntervalArrays:
        """Return how many times as fast each point is as the corresponding other point.

        `level` is the level of each interval, NaN for none.
        """
        own, theirs = self.of(np.arange(len(self.basis))), self.of(other)
        if self.interval == "welch":
            return self.pairs(other).instead_of(welch(own, theirs, level), level)
        if self.interval == "fieller":
            return fieller(theirs, own, level)
        return self._resampled(other, theirs.mean / own.mean, level)

    def pairs(self, other: Ints) -> Differences:
        """Return the differences of each point from the other one within the blocks."""
        return of_bases(self.rates, self.basis, self.point, self.block, other)

    def fewest(self, others: Iterable[Ints]) -> Floats:
        """Return the smallest number of runs on a side of a point's ratios; NaN without any."""
        every = np.arange(len(self.basis))
        own, least = self.of(every).number, np.full(len(every), np.inf)
        for other in others:
            pair = np.minimum(own, self.of(other).number)
            least = np.where((pair > 0) & (other != every), np.minimum(least, pair), least)
        return np.where(np.isinf(least), NAN, least)

    def _resampled(self, other: Ints, value: Floats, level: Floats) -> IntervalArrays:
        low, high = np.full((2, len(value)), NAN)
        enough = np.minimum(self.of(np.arange(len(value))).number, self.of(other).number)
        for point in np.flatnonzero((enough >= LEAST_FOR_MEAN) & ~np.isnan(value + level)).tolist():
            rates = self.rates[self.basis[point]]
            times, base = (1 / _known(rates[self.point == p]) for p in (point, other[point]))
            found = bootstrap(base, times, float(level[point]))
            low[point], high[point] = found[1:]
        return IntervalArrays(value, low, high)


def samples(
    rates: Iterable[Floats], groups: Grouped, basis: Ints, interval: IntervalKind
) -> Samples:
    """Return the samples of points from the rates of runs by basis; NaN is no rate."""
    each, size, point = tuple(rates), len(basis), groups.point
    scaled = [np.log(rate) if interval == "welch" else 1 / rate for rate in each]
    of_basis = tuple(moments(values, point, size) for values in scaled)
    return Samples(each, point, block_codes(groups.runs), basis, interval, of_basis)


def _known(values: Floats) -> Floats:
    found: Floats = values[~np.isnan(values)]
    return found
