"""Reductions of arrays by group: one value for each group."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpc_train.scaling.record_arrays import Ints, Mask

# A product or a ratio of any two, and the square of a sum, are still numbers.
LEAST, MOST = 1e-100, 1e100
Formula = TypeVar("Formula", bound=Callable[..., Any])


def usable(values: Any) -> Any:
    """Return which values are usable: finite, and within the range of measurements."""
    sizes = np.abs(values)
    return (sizes == 0) | ((sizes >= LEAST) & (sizes <= MOST))


def known(values: Any) -> Any:
    """Return the values, a Series as such, with NaN for those that are not usable."""
    sound = usable(values)
    if isinstance(values, pd.Series):
        return values.where(sound)
    return np.where(sound, values, np.nan)


def positive(rates: Any) -> Any:
    """Return the rates, with NaN for those that are not usable or not above 0."""
    return rates.where((rates > 0) & usable(rates))


def bounded(formula: Formula) -> Formula:
    """Return a formula whose result is NaN, without a warning, outside the range of measurements.

    NaN means unknown: a missing value in a report, never a wrong number.
    """

    @wraps(formula)
    def quiet(*values: Any, **named: Any) -> Any:
        with np.errstate(all="ignore"):
            found = known(formula(*values, **named))
        return found if found.ndim else float(found)

    return cast("Formula", quiet)


Floats = NDArray[np.float64]
NAN = float("nan")
# Computed batches and rates agree to fewer digits than counted ones.
SAME = 1e-6


class Moments(NamedTuple):
    """Per group: the number of values, their mean and their variance (n - 1); NaN without."""

    number: Floats
    mean: Floats
    variance: Floats

    @classmethod
    def along_axis(cls, values: Floats) -> Moments:
        """Return the elements of the values along the last axis."""
        n = values.shape[-1]
        variance = values.var(-1, ddof=1) if n > 1 else np.full(values.shape[:-1], NAN)
        return cls(np.full(values.shape[:-1], float(n)), values.mean(-1), variance)

    def of(self, groups: Ints) -> Moments:
        """Return the values of some groups, in that order; NaN for -1."""
        absent = groups < 0
        if not len(self.number):
            return Moments(*(np.full(len(groups), fill) for fill in (0.0, NAN, NAN)))
        count, mean, variance = (column[groups] for column in self)
        return Moments(
            np.where(absent, 0.0, count),
            np.where(absent, NAN, mean),
            np.where(absent, NAN, variance),
        )


def moments(values: Floats, groups: Ints, size: int) -> Moments:
    """Return the moments of the values that are not NaN; deviations are squared, never the "
    "values."""
    values, groups = _known(values, groups)
    if not len(values):
        return Moments(np.zeros(size), np.full(size, NAN), np.full(size, NAN))
    count = np.bincount(groups, minlength=size).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = np.bincount(groups, values, size) / count
        mean += np.bincount(groups, values - mean[groups], size) / count
        squares = np.bincount(groups, (values - mean[groups]) ** 2, size)
        return Moments(count, mean, np.where(count > 1, squares / (count - 1), NAN))


def least(values: Floats, groups: Ints, size: int) -> Floats:
    """Return the smallest known value of each group, NaN without."""
    return -most(-values, groups, size)


def most(values: Floats, groups: Ints, size: int) -> Floats:
    """Return the largest known value of each group, NaN without."""
    values, groups = _known(values, groups)
    extremes = np.full(size, -np.inf)
    np.maximum.at(extremes, groups, values)
    return np.where(np.isinf(extremes), NAN, extremes)


def sums(values: Floats, groups: Ints, size: int) -> Floats:
    """Return the sum of the known values of each group, NaN without."""
    values, groups = _known(values, groups)
    sums = np.bincount(groups, values, size)
    return np.where(np.bincount(groups, minlength=size) > 0, sums, NAN)


def _known(values: Floats, groups: Ints) -> tuple[Floats, Ints]:
    """Return the values that are not NaN, and their groups."""
    known = ~np.isnan(values)
    if known.all():
        return values, groups
    places = np.flatnonzero(known)
    return values[places], groups[places]


def only(values: Floats, groups: Ints, size: int) -> Floats:
    """Return the common value of each group, NaN if values differ."""
    low, high = least(values, groups, size), most(values, groups, size)
    return np.where(agree(low, high), low, NAN)


def agree(low: Floats, high: Floats) -> Mask:
    """Whether the smallest and the largest value of a group are equal."""
    same: Mask = high - low <= SAME * np.abs(high)
    return same


def numbers(frame: pd.DataFrame, name: str) -> Floats:
    """Return a column as floats; NaN for missing values, or if there is no such column."""
    if name not in frame:
        return np.full(len(frame), NAN)
    column = frame[name]
    return column.to_numpy(dtype=np.float64, na_value=NAN)


def levels_of(values: Floats, near: float) -> Ints:
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


def filled(code: Ints, *groups: Ints) -> Ints:
    """Replace a missing level (-1) by the most frequent one of the first group, else of the "
    "next."""
    for group in groups:
        best = np.full(int(group.max(initial=-1)) + 1, -1, dtype=np.int64)
        width = int(code.max(initial=0)) + 1
        known = code >= 0
        pairs, counts = np.unique(group[known] * width + code[known], return_counts=True)
        # The last value that is written remains: the most frequent level, the first of several.
        pairs = pairs[np.lexsort((-pairs, counts))]
        best[pairs // width] = pairs % width
        code = np.where(code < 0, best[group], code)
    return code
