"""A column of objects that many runs share -> each object once, with the first run that has it."""

from collections.abc import Iterable
from typing import TypeVar

_T = TypeVar("_T")


def each_once(column: Iterable[_T]) -> list[tuple[int, _T]]:
    """Return the place of the first run with each object, and the object, in order.

    Objects are told apart by identity, because dicts have no hash. What follows from the conditions
    of a run is so computed once for all runs that share them; equal objects that are not shared are
    listed separately.
    """
    values = list(column)
    places = range(len(values) - 1, -1, -1)
    first = dict(zip(map(id, reversed(values)), places, strict=True))
    return [(place, values[place]) for place in sorted(first.values())]
