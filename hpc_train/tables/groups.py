"""Sorted arrays -> one value per group, without a loop over the groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpc_train.tables.columns import Flags, Ints
from hpc_train.tables.intervals import Floats

Rowwise = Callable[[Floats], Floats]


def packed(*keys: NDArray[Any]) -> Ints:
    """Return one number for each combination of keys, which sorts as the keys do."""
    whole, size = np.zeros(len(keys[0]), dtype=np.int64), 1
    for key in keys if len(whole) else ():
        low, width = int(key.min()), int(key.max()) - int(key.min()) + 1
        if size * width >= 2**62:
            key, low = np.unique(key, return_inverse=True)[1], 0
            whole = np.unique(whole, return_inverse=True)[1]
            width, size = int(key.max()) + 1, int(whole.max()) + 1
        whole = whole * width + (key.astype(np.int64) - low)
        size *= width
    return whole


def starts(*keys: NDArray[Any]) -> Ints:
    """Return where each group of equal neighbours begins."""
    if not len(keys[0]):
        return np.zeros(0, dtype=np.int64)
    new = np.zeros(len(keys[0]), dtype=bool)
    new[0] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(new)


def lengths(first: Ints, size: int) -> Ints:
    """Return how long groups are that begin at `first`, of `size` elements in all."""
    return np.diff(first, append=size)


def per_run(function: Rowwise, values: Floats, run: Ints, runs: int) -> Floats:
    """Return what `function` makes of the values of each run along axis 1; NaN without values.

    `run` is sorted. Runs with the same number of values go through `function` together.
    """
    found = np.full(runs, np.nan)
    first = starts(run)
    for which, places in _by_length(first, len(run)):
        found[run[first[which]]] = function(values[places])
    return found


def within_runs(function: Rowwise, values: Floats, run: Ints) -> Floats:
    """Return what `function` makes of the values of each run, one for each of them."""
    found = np.empty(len(values))
    for _, places in _by_length(starts(run), len(run)):
        found[places] = function(values[places])
    return found


def counts(run: Ints, runs: int) -> Ints:
    """Return how many elements each run has."""
    return np.bincount(run, minlength=runs)


def any_of(chosen: Flags, run: Ints, runs: int) -> Flags:
    """Return which runs have a chosen element."""
    return counts(run[chosen], runs) > 0


def last_of(values: Floats, run: Ints, runs: int) -> Floats:
    """Return the last value of each run, NaN without any."""
    found = np.full(runs, np.nan)
    ends = np.flatnonzero(np.append(run[1:] != run[:-1], True)) if len(run) else run
    found[run[ends]] = values[ends]
    return found


def highest(values: Floats, run: Ints, runs: int) -> Floats:
    """Return the largest value of each run, NaN without any."""
    found = np.full(runs, np.nan)
    first = starts(run)
    if len(first):
        found[run[first]] = np.maximum.reduceat(values, first)
    return found


def total(rows: Floats) -> Floats:
    """Return the sum of each row."""
    return np.asarray(rows.sum(axis=1))


def mean(rows: Floats) -> Floats:
    """Return the mean of each row."""
    return np.asarray(rows.mean(axis=1))


def median(rows: Floats) -> Floats:
    """Return the median of each row."""
    return np.asarray(np.median(rows, axis=1))


def _by_length(first: Ints, size: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield groups of one length at a time, with the places of their elements as rows."""
    length = lengths(first, size)
    order = np.argsort(length, kind="stable")
    for which in np.split(order, starts(length[order])[1:]) if len(order) else ():
        yield which, first[which][:, None] + np.arange(length[which[0]])
