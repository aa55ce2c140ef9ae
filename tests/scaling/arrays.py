"""Moments of samples, one in each row, and intervals of pairs of samples."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hpc_train.scaling import points as intervals
from hpc_train.scaling.record_arrays import Floats, Moments


class Interval(NamedTuple):
    """A value and its limits; None for a limit that there is not."""

    value: float
    low: float | None
    high: float | None


def along_axis(values: Floats) -> Moments:
    """The moments of the values along the last axis."""
    n = values.shape[-1]
    variance = values.var(-1, ddof=1) if n > 1 else np.full(values.shape[:-1], np.nan)
    return Moments(np.full(values.shape[:-1], float(n)), values.mean(-1), variance)


def welch(a: Floats, b: Floats, confidence: float) -> intervals.IntervalArrays:
    return intervals.welch(along_axis(np.log(a)), along_axis(np.log(b)), confidence)


def ratio_interval(
    a: Sequence[float], b: Sequence[float], confidence: float = intervals.CONFIDENCE
) -> Interval:
    value, low, high = (float(x) for x in welch(np.asarray(a), np.asarray(b), confidence))
    return Interval(value, *(None if np.isnan(x) else x for x in (low, high)))
