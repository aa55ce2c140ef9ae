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
    first: dict[int, int] = {}
    values = list(column)
    for place, number in enumerate(map(id, values)):
        if number not in first:
            first[number] = place
    return [(place, values[place]) for place in first.values()]
