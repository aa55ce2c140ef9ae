"""Point table -> the sizes and speedups to which a law of scaling can be fitted, as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from hpc_train.tables.group_reductions import Floats, numbers
from hpc_train.tables.record_arrays import Ints, Mask

# No machine is larger; products of six such numbers are still numbers.
LARGEST = 1e20


class FittedSizes(NamedTuple):
    """Columns of points: size and speedup, their runs and the variation between them.

    `above`: the speedup is above the ideal one. A missing number of nodes is not one node.
    """

    q: Floats
    speedup: Floats
    runs: Floats
    variation: Floats
    above: Mask
    on_one_node: Mask

    def at(self, places: Ints) -> FittedSizes:
        """Return some of the points."""
        return FittedSizes._make(column[places] for column in self)


def with_size_and_speedup(points: pd.DataFrame) -> pd.DataFrame:
    """Return the points with a size and a speedup that can be computed with."""
    found: pd.DataFrame = points.loc[_countable(points["ideal"]) & _countable(points["speedup"])]
    return found


def fitted_sizes(points: pd.DataFrame) -> FittedSizes:
    """Return the columns of points of any series."""
    return FittedSizes(
        q=numbers(points, "ideal"),
        speedup=numbers(points, "speedup"),
        runs=numbers(points, "n_ok"),
        variation=numbers(points, "cv"),
        above=_superlinear(points),
        on_one_node=numbers(points, "nodes") == 1,
    )


def _superlinear(points: pd.DataFrame) -> Mask:
    """Return which points are above the ideal speedup, by the rule of the flag `superlinear`."""
    q, value, low, high = (
        numbers(points, name) for name in ("ideal", "speedup", "speedup_low", "speedup_high")
    )
    rounded = np.round(value / q, 3)
    larger = np.where(np.isnan(low), rounded, low / q) > 1
    smaller = np.where(np.isnan(high), rounded, high / q) < 1
    above: Mask = np.where(q > 1, larger, (q < 1) & smaller)
    return above


def _countable(sizes: pd.Series[float]) -> Mask:
    found: Mask = ((sizes >= 1 / LARGEST) & (sizes <= LARGEST)).to_numpy(dtype=bool)
    return found
