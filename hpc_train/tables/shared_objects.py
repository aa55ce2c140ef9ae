"""A column of objects that runs share, their conditions and flags -> each object, and its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from hpc_train.tables.record_arrays import Ints
from hpc_train.tables.row_codes import numbered_in_order

_T = TypeVar("_T")


class Shared(NamedTuple, Generic[_T]):
    """Objects, and the number of each run's object."""

    objects: Sequence[_T]
    codes: Ints

    def each(self, function: Callable[[_T], Any]) -> Any:
        """Return an array of a value for each run; the function is called once for each object."""
        return np.array([function(one) for one in self.objects])[self.codes]

    def at(self, run: int) -> _T:
        """Return the object of one run."""
        found: _T = self.objects[int(self.codes[run])]
        return found

    def spread(self) -> list[_T]:
        """Return the object of each run."""
        objects = self.objects
        return [objects[code] for code in self.codes.tolist()]

    def changed(self, new: Mapping[int, _T]) -> Shared[_T]:
        """Return the objects with those of some runs, by their number, replaced."""
        if not new:
            return self
        codes = self.codes.copy()
        codes[list(new)] = np.arange(len(new)) + len(self.objects)
        return Shared([*self.objects, *new.values()], codes)

    def distinct(self) -> Shared[_T]:
        """Return the objects with equal ones as one."""
        order: dict[Any, int] = {}
        own = [_Hashable(one) if isinstance(one, dict) else one for one in self.objects]
        place = [order.setdefault(one, len(order)) for one in own]
        return Shared([*order], np.array([*place, -1], dtype=np.int64)[self.codes])

    def column(self) -> pd.Categorical:
        """Return a column for a frame, which has each object once; None is a missing value.

        Equal objects become one.
        """
        each = self.distinct()
        place = [-1 if one is None else number for number, one in enumerate(each.objects)]
        number = np.array([*place, -1], dtype=np.int64)[each.codes]
        codes, used = numbered_in_order(number, len(place))
        # A list of tuples would become an index of several levels.
        objects: list[Any] = [*each.objects]
        every = pd.Index(objects, dtype="object", tupleize_cols=False)
        return pd.Categorical.from_codes(codes, categories=every.take(used))


class _Hashable(dict[Any, Any]):
    """A dict that a column can hold once for many runs; it is never changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


def shared(column: Iterable[_T] | Shared[_T]) -> Shared[_T]:
    """Return the objects of a column in order of appearance, told apart by identity.

    Runs of one kind share an object, so that what follows from it is computed once for all of them.
    Equal objects that are not shared are separate, and give the same result.
    """
    if isinstance(column, Shared):
        return column
    own = getattr(column, "array", column)
    if isinstance(own, pd.Categorical):
        codes, used = numbered_in_order(own.codes, len(own.categories))
        return Shared(own.categories.take(used).tolist(), codes)
    values = list(column)
    numbers = np.fromiter(map(id, values), dtype=np.int64, count=len(values))
    codes = pd.factorize(numbers)[0].astype(np.int64)
    first = np.flatnonzero(~pd.Series(codes).duplicated().to_numpy())
    return Shared([values[run] for run in first.tolist()], codes)


def shared_texts(column: pd.Series[str]) -> Shared[str]:
    """Return the different texts of a column in order of appearance."""
    codes, found = pd.factorize(column)
    return Shared([str(text) for text in found], codes.astype(np.int64))


def joined(parts: Sequence[Shared[_T]]) -> Shared[_T]:
    """Return the objects of the runs of all parts, in order."""
    if len(parts) == 1:
        return parts[0]
    before = np.cumsum([0, *(len(one.objects) for one in parts)]).tolist()
    codes = [one.codes + start for one, start in zip(parts, before, strict=False)]
    objects = list(chain.from_iterable(one.objects for one in parts))
    return Shared(objects, np.concatenate(codes))
