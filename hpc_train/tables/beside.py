"""Records -> secondary metrics of each run: memory, energy, shares of time."""

from __future__ import annotations

import re

import numpy as np

from hpc_train.model.study import Warmup
from hpc_train.tables.columns import Columns
from hpc_train.tables.groups import highest, last_of, mean, median, per_run, total
from hpc_train.tables.intervals import Floats
from hpc_train.tables.magnitudes import usable
from hpc_train.tables.measurements import GLOBAL, Rows, once, stated
from hpc_train.tables.steps import NAN, measured, of_last, step_means, step_totals

BESIDE = (
    "mfu", "tflops_per_gpu", "memory_gib", "learning_rate", "optimiser_steps", "samples_seen",
    "data_share", "communication_share", "energy_j",
)  # fmt: skip
# Timers of Megatron and DeepSpeed; those of the slowest rank end in ` max`.
_WORDS = {
    "data_share": re.compile(r"(?:^|-)data(?:-?load\w*|-time|-wait)?(?: max)?$|batch-generator"),
    "communication_share": re.compile(
        r"all-?reduce|all-?gather|reduce-?scatter|all-?to-?all|grads-sync|-send|-recv|(?:^|-)comm"
    ),
}
_STEPPED = ("step_time", "samples", "samples_per_second", "tokens_per_second")


def beside(rest: Columns, rows: Rows, warmup: Warmup, ranks: Floats) -> dict[str, Floats]:
    """Return a value for each run, NaN if its logs have none; `rest` are the records not in `rows`.

    `mfu` and `tflops_per_gpu`: the median of the measured steps, mean over ranks, as the program
    printed them. `memory_gib`: the most that any rank names, of what it allocated or reserved.
    `learning_rate`: the highest of the schedule. `optimiser_steps`: as stated, else the number of
    the last step (one more where they count from 0). `energy_j`: of the run as stated, else the sum
    of the steps, of all ranks.
    """
    size = len(ranks)
    kinds = {name: _rows(rest, name, size) for name in ("mfu", "tflops", "energy")}
    each = kinds["tflops"].take(kinds["tflops"].scope != GLOBAL)
    count = _peak(_rows(rest, "steps", size), size)
    return {
        "mfu": _typical(kinds["mfu"], warmup, size),
        "tflops_per_gpu": _typical(each, warmup, size),
        "memory_gib": _peak(_rows(rest, "memory", size, "max_"), size),
        "learning_rate": _peak(_rows(rest, "learning_rate", size), size),
        "optimiser_steps": np.where(np.isnan(count), _last_step(rows, size), count),
        "energy_j": _energy(kinds["energy"], ranks),
    }


def samples_seen(rows: Rows, steps: Floats, batch: Floats) -> Floats:
    """Return the samples that a run states it trained on, else steps times global batch."""
    own = rows.named("samples")
    whole = own.take((own.scope == GLOBAL) & ~own.stepped)
    said = last_of(whole.value, whole.run, len(batch))
    return np.where(np.isnan(said), steps * batch, said)


def time_shares(rest: Columns, warmup: Warmup, step_time_s: Floats) -> dict[str, Floats]:
    """Return which fraction of the mean step time went into data and into communication.

    Mean over ranks and measured steps of the largest timer of that kind: timers contain one
    another, and so their sum would count time twice. NaN where none is logged, or more than the
    whole step.
    """
    found, runs = {}, len(step_time_s)
    for name, words in _WORDS.items():
        most = np.full(runs, NAN)
        for rows in _phases(rest, runs, words):
            times = step_means(rows.take(rows.stepped))
            kept = times.take(measured(times, Warmup(steps=warmup.steps)))
            most = np.fmax(most, per_run(mean, kept.value, kept.run, runs))
        share = most / step_time_s
        found[name] = np.where(share <= 1, share, NAN)
    return found


def _phases(fields: Columns, runs: int, words: re.Pattern[str]) -> list[Rows]:
    names = [name for name in fields.variant.names if words.search(name.replace("_", "-"))]
    names = [name for name in names if not name.endswith(" min")]
    kinds = np.where(fields.metric.among(["phase_time"]) == 0, fields.variant.among(names), -1)
    rows = _sound(once(stated(fields, kinds)), runs)
    return [rows.of(kind) for kind in range(len(names))]


def _rows(fields: Columns, metric: str, runs: int, peak: str = "") -> Rows:
    """Return the rows of one metric without a variant; and those whose variant begins with `peak`.

    Different variants of one step are different measurements.
    """
    fit = ["", *(name for name in fields.variant.names if peak and name.startswith(peak))]
    named = fields.metric.among([metric]) == 0
    rows = once(stated(fields, np.where(named, fields.variant.among(fit), -1)))
    rows = _sound(rows, runs)
    return rows.take(np.argsort(rows.run, kind="stable")) if len(fit) > 1 else rows


def _sound(rows: Rows, runs: int) -> Rows:
    """Remove values that are not usable, and the records of other runs."""
    return rows.take(usable(rows.value) & (rows.run < runs))


def _peak(rows: Rows, runs: int) -> Floats:
    return highest(rows.value, rows.run, runs)


def _typical(rows: Rows, warmup: Warmup, runs: int) -> Floats:
    times = step_means(rows.take(rows.stepped))
    kept = times.take(measured(times, Warmup(steps=warmup.steps)))
    last = of_last(rows.take(~rows.stepped))
    said = per_run(mean, last.value, last.run, runs)
    return np.where(np.isnan(said), per_run(median, kept.value, kept.run, runs), said)


def _last_step(rows: Rows, runs: int) -> Floats:
    found = np.full(runs, NAN)
    for metric in _STEPPED:
        own = rows.named(metric)
        own = own.take(own.stepped)
        step = own.step.astype(np.float64)
        from_0 = highest(-step, own.run, runs) == 0
        found = np.fmax(found, highest(step, own.run, runs) + from_0)
    return found


def _energy(rows: Rows, ranks: Floats) -> Floats:
    stepwise = step_totals(rows, ranks)
    summed = per_run(total, stepwise.value * stepwise.weight, stepwise.run, len(ranks))
    whole = rows.take((rows.scope == GLOBAL) & ~rows.stepped)
    said = last_of(whole.value, whole.run, len(ranks))
    return np.where(np.isnan(said), summed, said)
