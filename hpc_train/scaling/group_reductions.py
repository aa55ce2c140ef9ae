"""Reductions of arrays by group: one value for each group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Literal, NamedTuple, TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

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


def positive(rates: Floats) -> Floats:
    """Return the rates, with NaN for those that are not usable or not above 0."""
    return np.where((rates > 0) & usable(rates), rates, NAN)


def first_known(*columns: Any) -> Floats:
    """Return for each element the first value that is not NaN."""
    found = np.asarray(columns[0], dtype=np.float64)
    for other in columns[1:]:
        found = np.where(np.isnan(found), other, found)
    return found


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
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
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
    """Return the moments of the values that are not NaN.

    Deviations are squared, never the values.
    """
    places = np.flatnonzero(~np.isnan(values))
    values, groups = values[places], groups[places]
    if not len(values):
        return Moments(np.zeros(size), np.full(size, NAN), np.full(size, NAN))
    count = np.bincount(groups, minlength=size).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = np.bincount(groups, values, size) / count
        mean += np.bincount(groups, values - mean[groups], size) / count
        squares = np.bincount(groups, (values - mean[groups]) ** 2, size)
        return Moments(count, mean, np.where(count > 1, squares / (count - 1), NAN))


def over(how: Literal["min", "max", "sum"], values: Floats, groups: Ints, size: int) -> Floats:
    """Return the smallest, largest or sum of the known values of each group, NaN without."""
    known, found = ~np.isnan(values), np.full(size, NAN)
    if how == "sum":
        found[groups[known]] = 0.0
        np.add.at(found, groups[known], values[known])
    else:
        (np.fmin if how == "min" else np.fmax).at(found, groups, values)
    return found


def agree(low: Floats, high: Floats) -> Mask:
    """Whether the smallest and the largest value of a group are equal."""
    return high - low <= SAME * np.abs(high)


def numbers(frame: pd.DataFrame, name: str) -> Floats:
    """Return a column as floats; NaN for missing values, or if there is no such column."""
    if name not in frame:
        return np.full(len(frame), NAN)
    column = frame[name]
    if column.dtype == np.float64:
        return column.to_numpy(copy=True)
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
    """Replace a missing level (-1) by the most frequent one of its first group, else the next."""
    for group in groups:
        pairs = pd.DataFrame({"group": group, "code": code})
        known = pairs[code >= 0].value_counts().reset_index(name="n")
        # Of several, the first one.
        known = known.sort_values(["n", "code"], ascending=[False, True]).drop_duplicates("group")
        best = pairs["group"].map(known.set_index("group")["code"]).fillna(-1)
        code = np.where(code < 0, best, code).astype(np.int64)
    return code


def codes(columns: Sequence[pd.Series[Any]]) -> Ints:
    """Number the different rows in order of appearance; NA counts as a value."""
    found = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        code, values = pd.factorize(column)
        found = pd.factorize(found * (len(values) + 1) + code)[0].astype(np.int64)
    return found
