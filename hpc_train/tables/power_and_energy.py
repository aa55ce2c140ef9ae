"""Records -> operations, power and energy of each run, each in one scope.

Values per rank become one of the job only if every rank has one; one GPU per rank is assumed where
a value is per GPU. Values that are not above 0 are unknown: a counter that is absent reads 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hpc_train.model.study import Warmup
from hpc_train.tables.condition_differences import Printed
from hpc_train.tables.group_reductions import Floats, counts, last_of, mean, per_run, total
from hpc_train.tables.measurements import GLOBAL, PER_GPU, PER_RANK, Rows
from hpc_train.tables.plausible_range import bounded, positive
from hpc_train.tables.record_arrays import RecordArrays
from hpc_train.tables.run_sizes import Sizes
from hpc_train.tables.run_values import rows_of, typical
from hpc_train.tables.step_times import means_after_warmup, measured, of_last, step_totals


def use_of_hardware(
    rest: RecordArrays,
    warmup: Warmup,
    sizes: Sizes,
    found: Mapping[str, Any],
    tokens: Floats,
) -> dict[str, Floats]:
    """Return TFLOP/s per GPU, power [W] and energy [J] of each run, NaN where unknown.

    `found` has the other values of the runs, `tokens` the tokens of a sample.
    """
    runs = len(sizes.ranks)
    power, energy = rows_of(rest, "power", runs), rows_of(rest, "energy", runs)
    power_w = _power_w(power, warmup, sizes.ranks)
    energy_j = _energy_j(energy, sizes.ranks)
    per_step = _energy_of_step_j(energy, warmup, sizes.ranks)
    per_sample = _per_sample(per_step, energy_j, found)
    return {
        "tflops_per_gpu": _tflops_per_gpu(rows_of(rest, "tflops", runs), warmup, sizes),
        "power_w": power_w,
        "power_per_rank_w": np.where(
            np.isnan(power_w), _power_per_rank_w(power, warmup, runs), np.nan
        ),
        "energy_j": energy_j,
        "energy_per_sample_j": per_sample,
        "energy_per_token_j": _per_token(per_sample, per_step, tokens, found),
        "power_per_rate_j": _ratio(power_w, found["samples_per_second"]),
    }


def tokens_of_sample(printed: Printed, found: Mapping[str, Any]) -> Floats:
    """Return the printed length of a sequence, else tokens/s over samples/s; NaN without."""
    ratio = _ratio(found["tokens_per_second"], found["samples_per_second"])
    lengths = np.full(len(ratio), np.nan)
    for run, text in printed.lengths.items():
        lengths[run] = float(text)
    return np.where(np.isnan(lengths), ratio, lengths)


def _tflops_per_gpu(rows: Rows, warmup: Warmup, sizes: Sizes) -> Floats:
    """Return the median of the measured steps; a total is divided by the number of GPUs."""
    whole = typical(rows.take(rows.scope == GLOBAL), warmup, sizes.ranks)
    each = typical(rows.take(rows.scope != GLOBAL), warmup, sizes.ranks)
    gpus = np.where(sizes.gpus > 0, sizes.gpus, sizes.ranks)
    return positive(np.where(np.isnan(each), _ratio(whole, gpus), each))


def _power_w(rows: Rows, warmup: Warmup, ranks: Floats) -> Floats:
    """Return the power of all ranks: as stated of the run, else the mean of the measured steps."""
    stepwise = _measured(step_totals(rows, ranks), warmup)
    seconds = per_run(total, stepwise.steps.astype(float), stepwise.run, len(ranks))
    summed = per_run(total, stepwise.value * stepwise.steps, stepwise.run, len(ranks))
    stated_values = _of_all_ranks(rows, ranks)
    return positive(np.where(np.isnan(stated_values), _ratio(summed, seconds), stated_values))


def _power_per_rank_w(rows: Rows, warmup: Warmup, runs: int) -> Floats:
    """Return the mean over the ranks that printed their power."""
    own = rows.take(rows.scope != GLOBAL)
    kept = means_after_warmup(own, warmup.steps)
    last = of_last(own.take(~own.stepped))
    stated_values = per_run(mean, last.value, last.run, runs)
    by_steps = per_run(mean, kept.value, kept.run, runs)
    return positive(np.where(np.isnan(stated_values), by_steps, stated_values))


def _energy_j(rows: Rows, ranks: Floats) -> Floats:
    """Return the energy of the run: as stated, else the sum over its steps and ranks."""
    stepwise = step_totals(rows, ranks)
    summed = per_run(total, stepwise.value * stepwise.steps, stepwise.run, len(ranks))
    stated_values = _of_all_ranks(rows, ranks)
    return positive(np.where(np.isnan(stated_values), summed, stated_values))


def _energy_of_step_j(rows: Rows, warmup: Warmup, ranks: Floats) -> Floats:
    """Return the mean energy of a measured step."""
    kept = _measured(step_totals(rows, ranks), warmup)
    summed = per_run(total, kept.value * kept.steps, kept.run, len(ranks))
    steps = per_run(total, kept.steps.astype(float), kept.run, len(ranks))
    return positive(_ratio(summed, steps))


def _of_all_ranks(rows: Rows, ranks: Floats) -> Floats:
    """Return what is stated of the whole run: of the job, else the sum over all of its ranks."""
    runs, rows = len(ranks), rows.take(~rows.stepped)
    whole = rows.take(rows.scope == GLOBAL)
    own = of_last(rows.take(rows.scope == PER_RANK))
    summed = per_run(total, own.value, own.run, runs)
    summed[counts(own.run, runs) != ranks] = np.nan
    gpus = of_last(rows.take(rows.scope == PER_GPU))
    scaled = per_run(mean, gpus.value, gpus.run, runs) * ranks
    found = last_of(whole.value, whole.run, runs)
    for other in (summed, scaled):
        found = np.where(np.isnan(found), other, found)
    return found


def _measured(stepwise: Rows, warmup: Warmup) -> Rows:
    by_steps = Warmup(steps=warmup.steps)
    return stepwise.take(
        measured(stepwise.run, stepwise.step, stepwise.value * 0, stepwise.steps, by_steps)
    )


def _per_sample(per_step: Floats, whole_run: Floats, found: Mapping[str, Any]) -> Floats:
    """Return J per sample of the measured steps; without steps, of the whole run."""
    by_step = _ratio(per_step, found["global_batch"])
    by_run = _ratio(whole_run, found["samples_seen"])
    return positive(np.where(np.isnan(by_step), by_run, by_step))


def _per_token(
    per_sample: Floats, per_step: Floats, tokens: Floats, found: Mapping[str, Any]
) -> Floats:
    by_sample = _ratio(per_sample, tokens)
    by_step = _ratio(per_step, found["tokens_per_second"] * found["step_time_mean_s"])
    return positive(np.where(np.isnan(by_sample), by_step, by_sample))


@bounded
def _ratio(value: Any, unit: Any) -> Any:
    return value / np.where(np.asarray(unit) > 0, unit, np.nan)
