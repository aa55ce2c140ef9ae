"""Measurements of one run -> its steps -> one step time and one throughput."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from hpc_train.model.study import Warmup

NAN = float("nan")
LEAST_STEPS = 20


class StepSummary(NamedTuple):
    """Steps seen, left out and measured; NaN where nothing was measured."""

    seen: int
    warmup_steps: int
    steps: int
    step_time_s: float
    samples_per_second: float
    samples_per_step: float


def summarise_steps(
    table: pd.DataFrame, warmup: Warmup, ranks: int | None, global_batch: float | None
) -> StepSummary:
    """Reduce the steps of one run to its median step time [s] and its throughput [1/s].

    A step takes as long as its slowest rank. Throughput is total samples over total time of the
    measured steps, not a mean of rates (Hoefler and Belli, SC15, rules 3 and 4). Without samples
    of all ranks the recorded global batch is taken for each step. A value that is the mean of
    several steps counts as so many in totals, and once in the median.
    """
    timed = table[table["metric"] == "step_time"]
    times = _slowest(timed)
    weights = timed[timed["step"].notna()].groupby("step")["steps"].max()
    samples = step_totals(table, "samples", ranks)
    keep = measured(times, warmup)
    total = float((times * weights)[keep].sum())
    each = samples.reindex(times.index[keep])
    if each.isna().any() or each.empty:
        each = pd.Series(NAN if global_batch is None else global_batch, index=times.index[keep])
    usable = total > 0 and bool(keep.any())
    processed = float((each * weights[keep]).sum(skipna=False))
    return StepSummary(
        seen=len(times),
        warmup_steps=int((~keep).sum()),
        steps=int(weights[keep].sum()),
        step_time_s=float(times[keep].median()) if usable else NAN,
        samples_per_second=processed / total if usable else NAN,
        samples_per_step=float(samples.median()) if len(samples) else NAN,
    )


def measured(times: pd.Series[float], warmup: Warmup) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which steps count: those after `warmup.steps` steps and `warmup.seconds` seconds.

    `times` is indexed by step number. Steps are counted by their numbers, so that a log with every
    tenth step does not lose ten times as many.
    """
    if times.empty:
        return np.zeros(0, dtype=bool)
    number = times.index.to_numpy(dtype=np.int64)
    before = np.cumsum(times.to_numpy()) - times.to_numpy()
    kept: np.ndarray[tuple[int], np.dtype[np.bool_]] = (number - number[0] >= warmup.steps) & (
        before >= warmup.seconds
    )
    return kept


def step_totals(table: pd.DataFrame, metric: str, ranks: int | None) -> pd.Series[float]:
    """Return a metric's total over all ranks per step; a global value is the total already.

    Steps that not every rank has logged are left out: their sum would be too small. A value per
    GPU is multiplied by the number of ranks, one for each GPU; without that number there is none.
    """
    rows = table[(table["metric"] == metric) & table["step"].notna()]
    if rows.empty:
        none: pd.Series[float] = rows.set_index("step")["value"]
        return none
    total = rows[rows["scope"] == "global"]
    if len(total):
        given: pd.Series[float] = total.groupby("step")["value"].last()
        return given
    each = rows[rows["scope"] == "per_gpu"]
    if len(each):
        mean: pd.Series[float] = each.groupby("step")["value"].mean() * (ranks or NAN)
        return mean.dropna()
    by_step = rows.groupby("step")["value"].agg(["sum", "count"])
    complete = by_step["count"] == (ranks or by_step["count"].max())
    summed: pd.Series[float] = by_step.loc[complete, "sum"]
    return summed


def _slowest(rows: pd.DataFrame) -> pd.Series[float]:
    times: pd.Series[float] = rows[rows["step"].notna()].groupby("step")["value"].max()
    return times
