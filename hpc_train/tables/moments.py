"""Numbers of runs -> numbers of groups of runs: how many, mean, variance, extremes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpc_train.tables.steps import NAN

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Bools = NDArray[np.bool_]
# Batches and rates that were computed agree to fewer digits than those that were counted.
SAME = 1e-6


class Moments(NamedTuple):
    """Per group: the number of values, their mean and their variance (n - 1); NaN without."""

    number: Floats
    mean: Floats
    variance: Floats

    def of(self, groups: Codes) -> Moments:
        """Return those of some groups, in that order; of none (-1) there is no value."""
        absent = groups < 0
        if not len(self.number):
            return Moments(*(np.full(len(groups), fill) for fill in (0.0, NAN, NAN)))
        count, mean, variance = (column[groups] for column in self)
        return Moments(
            np.where(absent, 0.0, count),
            np.where(absent, NAN, mean),
            np.where(absent, NAN, variance),
        )


def moments(values: Floats, groups: Codes, size: int) -> Moments:
    """Return the moments of what is not NaN; deviations are squared, never the values."""
    known = ~np.isnan(values)
    values, groups = values[known], groups[known]
    count = np.bincount(groups, minlength=size).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = np.bincount(groups, values, size) / count
        mean += np.bincount(groups, values - mean[groups], size) / count
        squares = np.bincount(groups, (values - mean[groups]) ** 2, size)
        return Moments(count, mean, np.where(count > 1, squares / (count - 1), NAN))


def least(values: Floats, groups: Codes, size: int) -> Floats:
    """Return the smallest known value of each group, NaN without."""
    return -most(-values, groups, size)


def most(values: Floats, groups: Codes, size: int) -> Floats:
    """Return the largest known value of each group, NaN without."""
    known = ~np.isnan(values)
    extremes = np.full(size, -np.inf)
    np.maximum.at(extremes, groups[known], values[known])
    return np.where(np.isinf(extremes), NAN, extremes)


def total(values: Floats, groups: Codes, size: int) -> Floats:
    """Return the sum of the known values of each group, NaN without."""
    known = ~np.isnan(values)
    sums = np.bincount(groups[known], values[known], size)
    return np.where(np.bincount(groups[known], minlength=size) > 0, sums, NAN)


def only(values: Floats, groups: Codes, size: int) -> Floats:
    """Return the value that all of a group agree on, NaN where they do not."""
    low, high = least(values, groups, size), most(values, groups, size)
    return np.where(agree(low, high), low, NAN)


def agree(low: Floats, high: Floats) -> Bools:
    """Whether a group's smallest and largest value are one."""
    same: Bools = high - low <= SAME * np.abs(high)
    return same


def numbers(frame: pd.DataFrame, name: str) -> Floats:
    """Return a column as floats; NaN where there is no value, or no such column."""
    if name not in frame:
        return np.full(len(frame), NAN)
    return frame[name].to_numpy(dtype=np.float64, na_value=NAN)


def codes(columns: Sequence[pd.Series[float]]) -> Codes:
    """Number the different rows, in the order in which they appear; NA is a value like others."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        own = pd.factorize(column)[0].astype(np.int64) + 1
        code = pd.factorize(code * (len(own) + 1) + own)[0].astype(np.int64)
    return code


def levels_of(values: Floats, near: float) -> Codes:
    """Number the different values, smallest first; -1 for NaN.

    Values within `near` of the smallest of their level are the same.
    """
    known = ~np.isnan(values)
    found, place = np.unique(values[known], return_inverse=True)
    level, number, start = np.zeros(len(found), dtype=np.int64), -1, 0.0
    for index, value in enumerate(found.tolist()):
        if number < 0 or value > start + near * abs(start):
            number, start = number + 1, value
        level[index] = number
    code = np.full(len(values), -1, dtype=np.int64)
    code[known] = level[place]
    return code


def filled(code: Codes, *groups: Codes) -> Codes:
    """Give what has no level (-1) the commonest of its first group, else of its next."""
    for group in groups:
        code = np.where(code < 0, _commonest(code, group)[group], code)
    return code


def _commonest(code: Codes, group: Codes) -> Codes:
    best = np.full(int(group.max(initial=-1)) + 1, -1, dtype=np.int64)
    width = int(code.max(initial=0)) + 1
    known = code >= 0
    pairs, counts = np.unique(group[known] * width + code[known], return_counts=True)
    # The last to be written stays: the most frequent, of several the first level.
    pairs = pairs[np.lexsort((-pairs, counts))]
    best[pairs // width] = pairs % width
    return best
