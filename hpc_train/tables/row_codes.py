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
    return _numbered([pd.factorize(column)[0] for column in columns], sort=False)


def packed(*keys: NDArray[Any]) -> Ints:
    """Return one number for each combination of keys, in the sort order of the keys."""
    return _numbered(keys, sort=True)


def firsts(code: Ints) -> Ints:
    """Return the first place of each number of `codes`, which are numbered in their order."""
    return np.unique(code, return_index=True)[1]


def _numbered(keys: Sequence[NDArray[Any]], *, sort: bool) -> Ints:
    rows = pd.DataFrame(dict(enumerate(keys)))
    number: Ints = rows.groupby(list(rows), sort=sort).ngroup().to_numpy(dtype=np.int64)
    return number
