"""Measurements of each run -> one value for each metric, by the metric's rule."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from hpc_train.base.metrics import RATE_RECORDS, RUN_METRICS, OfRun
from hpc_train.jobs.study import Warmup
from hpc_train.scaling.group_reductions import (
    NAN,
    Floats,
    any_of,
    counts,
    highest,
    last_of,
    per_run,
    positive,
    starts,
    usable,
)
from hpc_train.scaling.measurements import GLOBAL, Rows, once, stated
from hpc_train.scaling.record_arrays import Ints, Mask, RecordArrays
from hpc_train.scaling.step_times import means_after_warmup, of_last, reported_rate

# Timers of Megatron and DeepSpeed; those of the slowest rank end in ` max`.
_TIMERS = {
    "data_share": re.compile(r"(?:^|-)data(?:-?load\w*|-time|-wait)?(?: max)?$|batch-generator"),
    "communication_share": re.compile(
        r"all-?reduce|all-?gather|reduce-?scatter|all-?to-?all|grads-sync|-send|-recv|(?:^|-)comm"
    ),
}
_STEPPED = ("step_time", "samples", *RATE_RECORDS)


def reduced(rows: Rows, rest: RecordArrays, warmup: Warmup, ranks: Floats) -> dict[str, Floats]:
    """Return the metrics that follow a common rule, a value for each run, NaN without records.

    `last`: the last value, whichever rank printed it. `highest`: the largest of all ranks and
    steps. `median`: of the measured steps, mean over ranks; else the value of the whole run.
    `rate`: of all ranks, by `steps.reported_rate`. Metrics with scopes are in `rows`, all others in
    `rest`.
    """
    found = {}
    for metric in RUN_METRICS:
        rule = _RULES.get(metric.of_run)
        if rule is not None:
            own = (
                rows.named(metric.record)
                if metric.scopes
                else rows_of(rest, metric.record, len(ranks), metric.variant)
            )
            found[metric.key] = rule(own, warmup, ranks)
    return found


def optimiser_steps(rest: RecordArrays, rows: Rows, runs: int) -> Floats:
    """Return the printed number of steps, else the last step's number, plus one if counted from "
    "0."""
    count = highest_of(rows_of(rest, "steps", runs), runs)
    found = np.full(runs, NAN)
    for metric in _STEPPED:
        own = rows.named(metric)
        own = own.take(own.stepped & ~own.numbered)
        step = own.step.astype(np.float64)
        from_0 = highest(-step, own.run, runs) == 0
        found = np.fmax(found, highest(step, own.run, runs) + from_0)
    return np.where(np.isnan(count), found, count)


def samples_seen(rows: Rows, steps: Floats, batch: Floats) -> Floats:
    """Return the samples that a run states it trained on, else steps times global batch."""
    own = rows.named("samples")
    whole = own.take((own.scope == GLOBAL) & ~own.stepped)
    stated_values = last_of(whole.value, whole.run, len(batch))
    return np.where(np.isnan(stated_values), steps * batch, stated_values)


def time_shares(rest: RecordArrays, warmup: Warmup, step_time_s: Floats) -> dict[str, Floats]:
    """Return the fractions of the mean step time for data loading and for communication.

    Mean over ranks and measured steps of the largest timer of that kind: timers are nested, so
    their sum would count time twice. NaN if none is logged, or if the value exceeds the step time.
    """
    found, runs = {}, len(step_time_s)
    for name, words in _TIMERS.items():
        most = np.full(runs, NAN)
        for rows in _phases(rest, runs, words):
            kept = means_after_warmup(rows, warmup.steps)
            most = np.fmax(most, per_run("mean", kept.value, kept.run, runs))
        share = most / step_time_s
        found[name] = np.where(share <= 1, share, NAN)
    return found


def final(rows: Rows, metric: str, runs: int) -> Floats:
    """Return the last value of a metric, however many ranks printed it; NaN without."""
    own = rows.named(metric)
    return last_of(own.value, own.run, runs)


def stated_step_time_s(rows: Rows, runs: int) -> Floats:
    """Return the step time [s] that is stated of a whole run; NaN without."""
    own = rows.named("step_time")
    whole = own.take((own.scope == GLOBAL) & ~own.stepped)
    return last_of(whole.value, whole.run, runs)


def accuracy(rows: Rows, runs: int) -> Floats:
    """Return the last accuracy of the job; where each rank has its own, the mean of their last."""
    own = rows.named("accuracy")
    whole = own.take(own.scope == GLOBAL)
    stated_values = last_of(whole.value, whole.run, runs)
    each = of_last(own.take(own.scope != GLOBAL))
    return np.where(
        np.isnan(stated_values), per_run("mean", each.value, each.run, runs), stated_values
    )


def epochs(rows: Rows, runs: int) -> Ints:
    """Return the number of epochs with a time."""
    own = rows.named("epoch_time")
    return counts(own.run[starts(own.run, own.step)], runs)


def epoch_time_s(rows: Rows, runs: int) -> Floats:
    """Return the mean over epochs of the slowest rank's time [s], without the first of several."""
    own = rows.named("epoch_time")
    first = starts(own.run, own.step)
    if not len(first):
        return np.full(runs, np.nan)
    times, run = np.maximum.reduceat(own.value, first), own.run[first]
    begun = starts(run)
    kept = np.ones(len(run), dtype=bool)
    kept[begun] = counts(run, runs)[run[begun]] == 1
    return per_run("mean", times[kept], run[kept], runs)


def whole_seconds(rows: Rows, runs: int) -> Mask:
    """Return which runs printed times that are truncated to whole seconds.

    The book's lines are also printed by scripts whose times have decimals.
    """
    found = np.zeros(runs, dtype=bool)
    for metric in ("epoch_time", "time_to_train"):
        own = rows.named(metric)
        precise = any_of(own.value % 1 != 0, own.run, runs)
        found |= any_of(own.book, own.run, runs) & ~precise
    return found


def highest_of(rows: Rows, runs: int) -> Floats:
    """Return the largest value of each run, of all its ranks and steps; NaN without."""
    return highest(rows.value, rows.run, runs)


def typical(rows: Rows, warmup: Warmup, ranks: Floats) -> Floats:
    """Return the median of the measured steps, mean over ranks; else the value of the run."""
    runs = len(ranks)
    kept = means_after_warmup(rows, warmup.steps)
    last = of_last(rows.take(~rows.stepped))
    stated_values = per_run("mean", last.value, last.run, runs)
    return np.where(
        np.isnan(stated_values), per_run("median", kept.value, kept.run, runs), stated_values
    )


def rows_of(fields: RecordArrays, metric: str, runs: int, prefix: str = "") -> Rows:
    """Return the rows of one metric without a variant, and those whose variant has the prefix.

    Different variants of one step are different measurements.
    """
    fit = ["", *(name for name in fields.variant.names if prefix and name.startswith(prefix))]
    named = fields.metric.among([metric]) == 0
    rows = once(stated(fields, np.where(named, fields.variant.among(fit), -1)))
    rows = _sound(rows, runs)
    return rows.take(np.argsort(rows.run, kind="stable")) if len(fit) > 1 else rows


def _phases(fields: RecordArrays, runs: int, words: re.Pattern[str]) -> list[Rows]:
    names = [name for name in fields.variant.names if words.search(name.replace("_", "-"))]
    names = [name for name in names if not name.endswith(" min")]
    kinds = np.where(fields.metric.among(["phase_time"]) == 0, fields.variant.among(names), -1)
    rows = _sound(once(stated(fields, kinds)), runs)
    return [rows.of(kind) for kind in range(len(names))]


def _sound(rows: Rows, runs: int) -> Rows:
    """Remove values that are not usable, and the records of other runs."""
    return rows.take(usable(rows.value) & (rows.run < runs))


_RULES: dict[OfRun, Callable[[Rows, Warmup, Floats], Floats]] = {
    "last": lambda rows, _, ranks: last_of(rows.value, rows.run, len(ranks)),
    "highest": lambda rows, _, ranks: highest_of(rows, len(ranks)),
    "median": typical,
    "rate": lambda rows, warmup, ranks: positive(reported_rate(rows, warmup, ranks)),
}
