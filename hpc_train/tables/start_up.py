"""Steps of the warm-up -> the time that a run took before its steady rate."""

from __future__ import annotations

import numpy as np

from hpc_train.tables.group_reductions import NAN, Floats, per_run, starts, total
from hpc_train.tables.plausible_range import known
from hpc_train.tables.step_times import StepSummary


def startup_s(steps: StepSummary, first_step_s: Floats) -> Floats:
    """Return the time [s] that the steps left out took beyond their number of usual steps.

    Sum of (t - T) over the steps of the warm-up, T the median of the measured steps; the first
    step took `first_step_s` if that is longer, as it includes initialisation and compilation. NaN
    without a step left out and without a time of the first step; never below 0.
    """
    rows, runs = steps.left_out, len(first_step_s)
    first = starts(rows.run)
    beyond = (rows.value - steps.step_time_s[rows.run]) * rows.steps
    spent = per_run(total, beyond, rows.run, runs)
    one = np.full(runs, NAN)
    one[rows.run[first]] = beyond[first]
    init = first_step_s - steps.step_time_s
    extra = np.fmax(init - np.where(np.isnan(one), 0.0, one), 0.0)
    both = np.where(np.isnan(init), spent, np.where(np.isnan(spent), init, spent + extra))
    return np.asarray(known(np.where(np.isnan(both), NAN, np.maximum(both, 0.0))))
