"""Runs of one block -> ratios of two points from differences within the blocks.

The runs of a block share the nodes and the time of their allocation. What all of them have in
common cancels in a difference (Student, Biometrika 6, 1908), which Welch's interval, made for
independent samples, counts as noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from hpc_train.tables.confidence_intervals import IntervalArrays, welch
from hpc_train.tables.group_reductions import NAN, Floats, Moments, moments
from hpc_train.tables.record_arrays import Ints, Mask


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
