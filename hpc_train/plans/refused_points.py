"""The points of a study, without those whose strategy cannot run there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from hpc_train.errors import StrategyError
from hpc_train.model.study import Point, RefusedPoint

T = TypeVar("T")


def apart(
    points: Iterable[Point], prepare: Callable[[Point], T]
) -> tuple[tuple[T, ...], tuple[RefusedPoint, ...]]:
    """Return the prepared points, and the refused ones with the reason.

    Raises:
        StrategyError: no point can run.
    """
    done, refused, first = [], [], None
    for point in points:
        try:
            done.append(prepare(point))
        except StrategyError as failure:
            first = first or failure
            refused.append(RefusedPoint(axes=point.axes, reason=failure.reason))
    if first is not None and not done:
        raise first
    return tuple(done), tuple(refused)
