"""Columns of a table -> a number for each different row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpc_train.tables.record_arrays import Ints


def codes(columns: Sequence[pd.Series[float]]) -> Ints:
    """Number the different rows in order of appearance; NA counts as a value."""
    number = packed(*map(_whole, columns))
    size = int(number.max(initial=-1)) + 1
    if size > 4 * len(number):
        return pd.factorize(number)[0].astype(np.int64)
    return numbered_in_order(number, size)[0]


def numbered_in_order(number: NDArray[Any], size: int) -> tuple[Ints, Ints]:
    """Number codes below `size` in order of appearance; -1 remains. Return the used codes, too."""
    places = np.arange(len(number) - 1, -1, -1)
    first = np.full(size + 1, len(number), dtype=np.int64)
    # The last place that is written remains: the first one of each code.
    first[number[places]] = places
    used = np.argsort(first[:-1], kind="stable")
    used = used[first[used] < len(number)]
    new = np.full(size + 1, -1, dtype=np.int64)
    new[used] = np.arange(len(used))
    return new[number], used


def packed(*keys: NDArray[Any]) -> Ints:
    """Return one number for each combination of keys, in the sort order of the keys."""
    whole, size = np.zeros(len(keys[0]), dtype=np.int64), 1
    for key in keys if len(whole) else ():
        low, high = int(key.min()), int(key.max())
        width = high - low + 1
        if width == 1:
            continue
        if size * width >= 2**62:
            key, low = np.unique(key, return_inverse=True)[1], 0
            whole = np.unique(whole, return_inverse=True)[1]
            width, size = int(key.max()) + 1, int(whole.max()) + 1
        own = key.astype(np.int64, copy=False)
        own = own - low if low else own
        whole = whole * width + own if size > 1 else own
        size *= width
    return whole


def firsts(code: Ints) -> Ints:
    """Return the first place of each number of `codes`, which are numbered in their order."""
    highest_before = np.maximum.accumulate(code)
    return np.flatnonzero(np.diff(highest_before, prepend=-1) > 0)


def _whole(column: pd.Series[Any]) -> NDArray[Any]:
    """Return a number for each different value of a column."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.to_numpy()
    if not pd.api.types.is_integer_dtype(column.dtype):
        return pd.factorize(column)[0]
    absent = column.isna().to_numpy()
    if not absent.any():
        return column.to_numpy(dtype=np.int64)
    known: Ints = column.to_numpy(dtype=np.int64, na_value=0)
    return np.where(absent, known.max() + 1, known)
