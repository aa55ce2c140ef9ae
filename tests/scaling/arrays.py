"""Intervals of many pairs of samples, one pair in each row."""

from __future__ import annotations

import numpy as np

from hpc_train.scaling import points as intervals
from hpc_train.scaling.record_arrays import Floats, Moments


def welch(a: Floats, b: Floats, confidence: float) -> intervals.IntervalArrays:
    logs = [Moments.along_axis(np.log(sample)) for sample in (a, b)]
    return intervals.welch(logs[0], logs[1], confidence)
