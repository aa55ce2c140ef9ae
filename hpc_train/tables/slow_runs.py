"""Rates of the runs of a study -> the slow runs, if noise is skewed towards them.

Intervals are those of noise that is symmetric on logarithms. A cause that slows some runs only, and
often none of three, is seen in none of their spread.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from hpc_train.model.value import Value
from hpc_train.tables.group_reductions import Floats
from hpc_train.tables.points import grouped
from hpc_train.tables.probability_distributions import normal_below
from hpc_train.tables.record_arrays import Ints, Mask
from hpc_train.tables.run_order import LEVEL, log_rates

# The deviation of a slow run in standard deviations, and what makes one of a median deviation.
FAR, NORMAL = 4.0, 1.4826
_LEAST_RUNS = 3
# A slow run took at least so many times as long as the median of its point: less is no cause that
# anyone finds, and is not wider than the interval of ten runs with 2 % noise.
LEAST_TIMES = 1.02
# Skewness of values that are equal but for rounding.
_EQUAL = 1e-12


class SlowRuns(Value, frozen=True, kw_only=True):
    """The slow runs of a point: their names, of how many runs, and how much longer they took.

    In the median, `times` as long as the median of the point, which is row `point` of the table.
    """

    point: int
    names: tuple[str, ...]
    runs: int
    times: float


def slow_runs(runs: pd.DataFrame) -> tuple[SlowRuns, ...]:
    """Return the points with slow runs, from rows of `run_frame`; none if noise is not skewed.

    Noise is skewed if the skewness of all points with three runs or more is significant at half of
    the level (one side). A run is slow if it is far below the median of its point, by 2 % or more.
    """
    groups = grouped(runs)
    logs = log_rates(groups)
    used = np.flatnonzero(~np.isnan(logs))
    point, logs = groups.point[used], logs[used]
    if not _is_skewed(logs, point):
        return ()
    below = pd.Series(logs).groupby(point).transform("median").to_numpy() - logs
    slow = np.flatnonzero(_far_below(below, point) & (below >= np.log(LEAST_TIMES)))
    names, count = runs["run_id"].to_numpy()[used], np.bincount(point)
    return tuple(
        SlowRuns(
            point=int(one),
            names=tuple(map(str, names[own.to_numpy()])),
            runs=int(count[one]),
            times=float(np.exp(np.median(below[own.to_numpy()]))),
        )
        for one, own in pd.Series(slow).groupby(point[slow])
    )


def _is_skewed(logs: Floats, point: Ints) -> bool:
    """Whether the skewness of the points, m3/m2^1.5 of each, is significantly below 0.

    Of n normal values it has the mean 0 and the variance 6 (n - 2)/((n + 1) (n + 3)), whatever
    their spread (R. A. Fisher, Proc. London Math. Soc. 30, 1930). The points are weighted by the
    inverse of that.
    """
    count = np.bincount(point).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = logs - (np.bincount(point, logs) / count)[point]
        second, third = (np.bincount(point, apart**power) / count for power in (2, 3))
        skewness = third / second**1.5
    kept = (count >= _LEAST_RUNS) & (second > _EQUAL**2)
    n = count[kept]
    weight = (n + 1) * (n + 3) / (6 * (n - 2))
    if not len(n):
        return False
    score = float((weight * skewness[kept]).sum() / np.sqrt(weight.sum()))
    return normal_below(score) < LEVEL / 2


def _far_below(below: Floats, point: Ints) -> Mask:
    """Return which runs are far below the median of their point.

    The standard deviation is that of the median of all deviations, which slow runs do not change.
    """
    freedom = len(point) - len(np.unique(point))
    spread = NORMAL * float(np.median(np.abs(below))) * np.sqrt(len(point) / max(freedom, 1))
    found: Mask = below > FAR * spread
    return found
