"""Measurements that are no steps -> one value per run: epochs, summaries, ranks."""

from __future__ import annotations

import numpy as np

from hpc_train.tables.columns import NONE, Flags, Ints
from hpc_train.tables.groups import any_of, counts, highest, last_of, mean, per_run, starts
from hpc_train.tables.intervals import Floats
from hpc_train.tables.measurements import GLOBAL, METRICS, Rows
from hpc_train.tables.steps import of_last


def final(rows: Rows, metric: str, runs: int) -> Floats:
    """Return the last value of a metric, however many ranks printed it; NaN without."""
    own = rows.named(metric)
    return last_of(own.value, own.run, runs)


def stated_step_time_s(rows: Rows, runs: int) -> Floats:
    """Return the stated step time [s] of a whole run; NaN without."""
    own = rows.named("step_time")
    whole = own.take((own.scope == GLOBAL) & ~own.stepped)
    return last_of(whole.value, whole.run, runs)


def slowest(rows: Rows, metric: str, runs: int) -> Floats:
    """Return a time [s] as the slowest rank saw it; NaN without."""
    own = rows.named(metric)
    return highest(own.value, own.run, runs)


def named_ranks(rows: Rows, runs: int) -> Ints:
    """Return the number of ranks as far as the lines name them; 0 where they name none.

    Rank 0 may print for the whole job, so it is not taken as the only rank.
    """
    most = np.full(runs, -1)
    for kind in range(len(METRICS)):
        own = rows.of(kind)
        first = starts(own.run)
        if len(first):
            heard = np.where((own.scope == GLOBAL) & (own.rank == 0), NONE, own.rank)
            at = own.run[first]
            most[at] = np.maximum(most[at], np.maximum.reduceat(heard, first))
    epochs = rows.named("epoch_time")
    alone = (counts(epochs.run, runs) > 0) & ~any_of(~epochs.book, epochs.run, runs)
    return np.where(most >= 0, most + 1, alone.astype(np.int64))


def accuracy(rows: Rows, runs: int) -> Floats:
    """Return the last accuracy of the job; where each rank has its own, the mean of their last."""
    own = rows.named("accuracy")
    whole = own.take(own.scope == GLOBAL)
    stated = last_of(whole.value, whole.run, runs)
    each = of_last(own.take(own.scope != GLOBAL))
    return np.where(np.isnan(stated), per_run(mean, each.value, each.run, runs), stated)


def contradictions(rows: Rows, metric: str) -> dict[int, tuple[float, ...]]:
    """Return the different values of a metric that a run can only have once, by run."""
    own = rows.named(metric)
    own = own.take((own.scope == GLOBAL) & ~own.stepped)
    first = starts(own.run)
    if not len(first):
        return {}
    least, most = np.minimum.reduceat(own.value, first), np.maximum.reduceat(own.value, first)
    ends = np.append(first[1:], len(own.run))
    return {
        int(own.run[first[group]]): tuple(
            dict.fromkeys(own.value[first[group] : ends[group]].tolist())
        )
        for group in np.flatnonzero(least != most)
    }


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
    return per_run(mean, times[kept], run[kept], runs)


def whole_seconds(rows: Rows, runs: int) -> Flags:
    """Return which runs had their times cut to whole seconds before they were printed."""
    found = np.zeros(runs, dtype=bool)
    for metric in ("epoch_time", "time_to_train"):
        own = rows.named(metric)
        found |= any_of(own.book, own.run, runs)
    return found
