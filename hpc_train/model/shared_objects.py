"""A column of objects that many runs share -> each object once, with the first run that has it."""

from collections.abc import Iterable
from typing import Any, TypeVar

_T = TypeVar("_T")


def each_once(column: Iterable[_T]) -> list[tuple[int, _T]]:
    """Return the place of the first run with each object, and the object, in order.

    Objects are told apart by identity, because dicts have no hash. What follows from the conditions
    of a run is so computed once for all runs that share them; equal objects that are not shared are
    listed separately.
    """
    if hasattr(column, "cat"):
        return _categories(column)
    first: dict[int, int] = {}
    values = list(column)
    for place, number in enumerate(map(id, values)):
        if number not in first:
            first[number] = place
    return [(place, values[place]) for place in first.values()]


def _categories(column: Any) -> list[tuple[int, Any]]:
    """Return the same of a categorical Series, which has each object once."""
    places = (~column.duplicated()).to_numpy().nonzero()[0]
    return list(zip(places.tolist(), column.iloc[places].tolist(), strict=True))
