"""A column of objects that runs share, their conditions and flags -> each object, and its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from hpc_train.tables.record_arrays import Ints

_T = TypeVar("_T")


class Shared(NamedTuple, Generic[_T]):
    """The objects in order of appearance, and the number of each run's object."""

    objects: list[_T]
    codes: Ints

    def each(self, function: Callable[[_T], Any]) -> Any:
        """Return an array of a value for each run; the function is called once for each object."""
        return np.array([function(one) for one in self.objects])[self.codes]


def shared(column: Iterable[_T]) -> Shared[_T]:
    """Return the objects of a column, told apart by identity: dicts have no hash.

    Runs of one kind share an object, so that what follows from it is computed once for all of them.
    Equal objects that are not shared are separate, and give the same result.
    """
    values = list(column)
    numbers = np.fromiter(map(id, values), dtype=np.int64, count=len(values))
    codes = pd.factorize(numbers)[0].astype(np.int64)
    first = np.flatnonzero(~pd.Series(codes).duplicated().to_numpy())
    return Shared([values[run] for run in first.tolist()], codes)


def spread(objects: Sequence[_T], codes: Any) -> list[_T]:
    """Return the object of each run."""
    return [objects[code] for code in codes.tolist()]
