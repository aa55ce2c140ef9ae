"""Rates, step times and batches of runs -> a flag where they contradict one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from hpc_train.model.quality_flag import Flag, FlagCode
from hpc_train.tables.plausible_range import known

# Times are printed with two digits, and a mean differs from a median.
_TOLERANCE = 1.2


def with_contradictions(found: Mapping[str, Any]) -> list[tuple[Flag, ...]]:
    """Return the flags of each run, with one more if its rate, step time and batch disagree.

    The columns are those of `run_frame`, and `printed_rate` [samples/s]. A rate above batch / step
    time is impossible. One below it is a contradiction only between the cells of a table: programs
    include evaluations in their rates. The step time is the median or the mean, whichever fits.
    """
    own = found["conditions"]
    stated = np.array(["parser" not in one for one in own], dtype=bool)
    texts = pd.Series([one.get("sequence_length") for one in own], dtype=object)
    length = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=np.float64)
    median, mean = found["step_time_s"], found["step_time_mean_s"]
    steps = np.stack([median, np.where(np.isnan(mean), median, mean)])
    flags: list[tuple[Flag, ...]] = list(found["flags"])
    for item, rate, work, exact in (
        ("samples", found["printed_rate"], found["global_batch"], stated),
        ("tokens", found["tokens_per_second"], found["global_batch"] * length, stated & False),
    ):
        with np.errstate(all="ignore"):
            ratio = known(rate * steps / work)
        wrong = (ratio.min(0) > _TOLERANCE) | (exact & (ratio.max(0) < 1 / _TOLERANCE))
        for run in np.flatnonzero(wrong).tolist():
            detail = (
                f"{rate[run]:.4g} {item}/s in steps of {median[run]:.4g} s are "
                f"{rate[run] * median[run]:.4g} {item} a step, not {work[run]:g}"
            )
            flags[run] = (*flags[run], Flag(FlagCode.CONTRADICTION, detail))
    return flags
