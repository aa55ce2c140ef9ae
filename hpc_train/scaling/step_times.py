"""Step times of runs, and of nodes: one estimator from the same steps."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd

from hpc_train.jobs.study import Warmup
from hpc_train.logs.record import Record
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.group_reductions import (
    NAN,
    Floats,
    any_of,
    counts,
    highest,
    last_of,
    lengths,
    per_run,
    starts,
    usable,
)
from hpc_train.scaling.measurements import GLOBAL, PER_GPU, PER_RANK, Rows, once, stated
from hpc_train.scaling.record_arrays import NONE, Ints, Mask, RecordArrays, packed, record_arrays

LEAST_STEPS = 20
# Sixty seconds are a little less when they are the sum of six hundred tenths.
ROUNDING = 1e-9
QUANTILES = {"step_p05_s": 0.05, "step_p25_s": 0.25, "step_p75_s": 0.75, "step_p95_s": 0.95}


class StepSummary(NamedTuple):
    """For each run: steps seen, left out and measured; NaN where nothing was measured.

    `left_out` are the steps of the warm-up. `quantiles` are of the measured steps; `mean` is their
    total time over their number. `samples_per_second` is of the median step as well.
    """

    seen: Ints
    warmup_steps: Ints
    steps: Ints
    step_time_s: Floats
    mean: Floats
    quantiles: dict[str, Floats]
    samples_per_second: Floats
    samples_per_step: Floats
    left_out: Rows


def summarise_steps(rows: Rows, warmup: Warmup, ranks: Floats, global_batch: Floats) -> StepSummary:
    """Reduce the steps of each run to their median step time [s] and its throughput [1/s].

    A step takes as long as its slowest rank. Throughput is the median of the samples of a step over
    the median step time: both speak of the same steps, and neither of evaluations between them.
    Without samples of all ranks the recorded global batch is taken for each step. A value that is
    the mean of several steps counts as so many in totals, and once in medians and quantiles.
    """
    runs = len(ranks)
    times = slowest_steps(rows.named("step_time"))
    samples = step_totals(rows.named("samples"), ranks)
    keep = measured(times.run, times.step, times.value, times.steps, warmup)
    kept = times.take(keep)
    seconds = per_run("sum", kept.value * kept.steps, kept.run, runs)
    work = per_run("median", _samples(kept, samples, global_batch), kept.run, runs)
    steps = _steps_of(kept, runs)
    none = ~(seconds > 0)
    step_time_s = _unless(none, per_run("median", kept.value, kept.run, runs))
    return StepSummary(
        seen=_steps_of(times, runs),
        warmup_steps=_steps_of(times.take(~keep), runs),
        steps=steps,
        step_time_s=step_time_s,
        mean=_unless(none, seconds / np.maximum(steps, 1)),
        quantiles={
            name: _unless(none, per_run(share, kept.value, kept.run, runs))
            for name, share in QUANTILES.items()
        },
        samples_per_second=work / np.where(step_time_s > 0, step_time_s, NAN),
        samples_per_step=per_run("median", samples.value, samples.run, runs),
        left_out=times.take(~keep),
    )


def slowest_steps(rows: Rows) -> Rows:
    """Return one row for each step, the largest value over its ranks."""
    rows = rows.take(rows.stepped)
    first = starts(rows.run, rows.step)
    if not len(first):
        return _steps(rows, first, rows.value)
    return _steps(rows, first, np.maximum.reduceat(rows.value, first))


def step_means(rows: Rows) -> Rows:
    """Return one row for each step, the mean over its ranks."""
    first = starts(rows.run, rows.step)
    if not len(first):
        return _steps(rows, first, rows.value)
    count = lengths(first, len(rows.run))
    return _steps(rows, first, np.add.reduceat(rows.value, first) / count)


def measured(run: Ints, step: Ints, value: Floats, steps: Ints, warmup: Warmup) -> Mask:
    """Return which steps count: those after `warmup.steps` steps and `warmup.seconds` seconds.

    Steps are counted by their numbers, so that a log with every tenth step does not lose ten times
    as many; those between two lines of a log took as long as the later one says.
    """
    first = starts(run)
    begun = np.repeat(step[first], lengths(first, len(run)))
    kept: Mask = step - begun >= warmup.steps
    if warmup.seconds or (value < 0).any():
        since = np.diff(step, prepend=0)
        since[first] = 0
        spent = value * np.maximum(steps, since)
        passed = pd.Series(spent).groupby(run).cumsum().to_numpy()
        kept &= passed - spent >= warmup.seconds * (1 - ROUNDING)
    return kept


def means_after_warmup(rows: Rows, steps: int) -> Rows:
    """Return the mean of each step over its ranks, without the first steps of each run."""
    means = step_means(rows.take(rows.stepped))
    return means.take(
        measured(means.run, means.step, means.value, means.steps, Warmup(steps=steps))
    )


def step_totals(rows: Rows, ranks: Floats) -> Rows:
    """Return a metric's total over all ranks per step; a global value is the total already.

    Steps that not every rank has logged are left out: their sum would be too small. A value per
    GPU is multiplied by the number of ranks, one for each GPU; without that number there is none.
    """
    rows = rows.take(rows.stepped)
    whole = any_of(rows.scope == GLOBAL, rows.run, len(ranks))
    each = any_of(rows.scope == PER_GPU, rows.run, len(ranks)) & ~whole
    wanted = ~(whole | each)[rows.run]
    rows = rows.take(wanted | (rows.scope == np.where(whole, GLOBAL, PER_GPU)[rows.run]))
    first = starts(rows.run, rows.step)
    if not len(first):
        return _steps(rows, first, rows.value)
    found = lengths(first, len(rows.run))
    sums = _steps(rows, first, np.add.reduceat(rows.value, first))
    most = np.where(np.isnan(ranks), highest(found.astype(float), sums.run, len(ranks)), ranks)
    scaled = np.where(each[sums.run], sums.value / found * ranks[sums.run], sums.value)
    complete = whole[sums.run] | np.where(
        each[sums.run], ~np.isnan(scaled), found == most[sums.run]
    )
    return sums._replace(value=scaled).take(complete)


def reported_rate(rows: Rows, warmup: Warmup, ranks: Floats) -> Floats:
    """Return the throughput [1/s] of all ranks that runs themselves printed, NaN without.

    Rates per step: that of the median step after the warm-up, as of step times. Else the global
    summary, once; else the mean per GPU times the ranks; else the sum over the ranks, if every rank
    printed one.
    """
    runs = len(ranks)
    stepwise = step_totals(rows, ranks)
    rated = counts(stepwise.run, runs) > 0
    by_steps, values = Warmup(steps=warmup.steps), stepwise.value * 0
    kept = stepwise.take(measured(stepwise.run, stepwise.step, values, stepwise.steps, by_steps))
    positive = ~any_of(~(kept.value > 0), kept.run, runs)
    with np.errstate(divide="ignore", invalid="ignore"):
        typical = 1 / per_run("median", 1 / kept.value, kept.run, runs)
    whole = rows.take(rows.scope == GLOBAL)
    stated = last_of(whole.value, whole.run, runs)
    gpus = of_last(rows.take(rows.scope == PER_GPU))
    each = per_run("mean", gpus.value, gpus.run, runs) * ranks
    own = of_last(rows.take(rows.scope == PER_RANK))
    summed = per_run("sum", own.value, own.run, runs)
    summed[counts(own.run, runs) != ranks] = NAN
    alone = any_of(rows.scope == PER_GPU, rows.run, runs)
    unstated = np.where(np.isnan(stated), np.where(alone, each, summed), stated)
    return np.where(rated, np.where(positive, typical, NAN), unstated)


def of_last(rows: Rows) -> Rows:
    """Return the last value of each rank of each run."""
    rows = rows.take(np.argsort(packed(rows.run, rows.who), kind="stable"))
    first = starts(rows.run, rows.who)
    return rows.take(np.append(first[1:], len(rows.run))[: len(first)] - 1)


def _samples(kept: Rows, samples: Rows, global_batch: Floats) -> Floats:
    """Return the samples of each kept step; the batch for all of a run where some are not known."""
    key = packed(np.concatenate([kept.run, samples.run]), np.concatenate([kept.step, samples.step]))
    own, known = key[: len(kept.run)], key[len(kept.run) :]
    found = np.full(len(own), NAN)
    if len(known):
        at = np.minimum(np.searchsorted(known, own), len(known) - 1)
        found = np.where(known[at] == own, samples.value[at], NAN)
    lacking = any_of(np.isnan(found), kept.run, len(global_batch))
    return np.where(lacking[kept.run], global_batch[kept.run], found)


def _steps_of(some: Rows, runs: int) -> Ints:
    """Return how many steps each run has: one value may be of several."""
    return np.bincount(some.run, weights=some.steps, minlength=runs).astype(np.int64)


def _steps(rows: Rows, first: Ints, value: Floats) -> Rows:
    """Return the first row of each step with another value; it counts for the most steps."""
    steps = np.maximum.reduceat(rows.steps, first) if len(first) else first
    return rows.take(first)._replace(steps=steps, value=value)


def _unless(none: Mask, values: Floats) -> Floats:
    return np.where(none, NAN, values)


COLUMNS = ("run_id", "node", "step_time_s", "ranks", "measure")
STEP, COMPUTE = "step time", "compute time"
# Timers of work that a rank does without communication.
_ALONE = re.compile(r"(?:(?:forward|backward)-)?compute")
_STEP = ["alone", "run", "node", "step"]
_NODE = ["alone", "run", "node"]


def node_frame(
    study: ExpectedStudy, records: RecordArrays | pd.DataFrame | Iterable[Record]
) -> pd.DataFrame:
    """Return the median over the measured steps of each node's time [s], if logs name nodes.

    The time of a step on a node is the mean over its ranks. Where ranks wait for one another in
    each step, all of them take as long as the slowest, and only what they do alone tells them
    apart: `measure` is `compute time`, the metric of this name or the sum of the timers
    forward-compute and backward-compute, where these are logged on all nodes, else `step time`. A
    line that names no node is of the node that other lines of its rank name.
    """
    fields = record_arrays(records)
    if not (fields.node.codes >= 0).any():
        return _frame(pd.DataFrame(columns=pd.Index(COLUMNS)))
    names = [run.run_id for run in study.runs]
    fields = fields._replace(run=fields.run.led_by(names))
    rows = _timed(fields, len(names))
    table = pd.DataFrame(
        {"alone": rows.kind > 0, "run": rows.run, "node": _nodes(fields, rows)}
        | {"step": rows.step, "who": rows.who, "value": rows.value}
    )
    by_rank = table[table["node"] >= 0].groupby([*_STEP, "who"])["value"].sum().reset_index()
    found = _of_one_measure(_medians(by_rank, study.warmup))
    found["run_id"] = [names[run] for run in found["run"]]
    found["node"] = [fields.node.names[node] for node in found["node"]]
    found["measure"] = np.where(found["alone"], COMPUTE, STEP)
    return _frame(found.sort_values(["run", "node"], kind="stable", ignore_index=True))


def _frame(found: pd.DataFrame) -> pd.DataFrame:
    typed: pd.DataFrame = found[list(COLUMNS)].astype({"step_time_s": "float64", "ranks": "int64"})
    return typed


def _timed(fields: RecordArrays, runs: int) -> Rows:
    """Return the step times (kind 0) and compute times (others) of single ranks."""
    parts = [name for name in fields.variant.names if _ALONE.fullmatch(name.replace("_", "-"))]
    plain = fields.variant.among([""]) == 0
    steps = (fields.metric.among(["step_time"]) == 0) & plain
    phases = fields.metric.among(["phase_time"]) == 0
    part = np.where(phases, fields.variant.among(parts), -1)
    alone = (fields.metric.among(["compute_time"]) == 0) & plain
    kinds = np.where(steps, 0, np.where(part >= 0, 1 + part, -1))
    kinds = np.where(alone, 1 + len(parts), kinds)
    rows = once(stated(fields, kinds))
    mine = rows.stepped & (rows.scope == PER_RANK) & (rows.run < runs)
    return rows.take(mine & usable(rows.value))


def _nodes(fields: RecordArrays, rows: Rows) -> Ints:
    """Return the number of each row's node, -1 if it is unknown."""
    own = fields.node.codes[rows.place].astype(np.int64)
    known = np.flatnonzero((fields.node.codes >= 0) & (fields.rank != NONE))
    if not len(known):
        return own
    run, rank = fields.run.codes[known].astype(np.int64), fields.rank[known]
    key = packed(np.concatenate([run, rows.run]), np.concatenate([rank, rows.rank]))
    ranks, first = np.unique(key[: len(known)], return_index=True)
    sought = key[len(known) :]
    at = np.minimum(np.searchsorted(ranks, sought), len(ranks) - 1)
    named = np.where(ranks[at] == sought, fields.node.codes[known[first[at]]], -1)
    return np.where(own >= 0, own, named)


def _medians(by_rank: pd.DataFrame, warmup: Warmup) -> pd.DataFrame:
    slowest = by_rank.groupby(["alone", "run", "step"])["value"].max().reset_index()
    series = packed(slowest["alone"].to_numpy(), slowest["run"].to_numpy())
    values, ones = slowest["value"].to_numpy(), np.ones(len(slowest), dtype=np.int64)
    kept = slowest[measured(series, slowest["step"].to_numpy(), values, ones, warmup)]
    counted = by_rank.merge(kept[["alone", "run", "step"]])
    by_node = counted.groupby(_STEP)["value"].mean().groupby(_NODE).median()
    ranks = counted.groupby(_NODE)["who"].nunique()
    medians: pd.DataFrame = pd.DataFrame({"step_time_s": by_node, "ranks": ranks}).reset_index()
    return medians


def _of_one_measure(found: pd.DataFrame) -> pd.DataFrame:
    """Keep the compute times of runs that print them for every node, else the step times."""
    nodes = found.groupby(["run", "alone"])["node"].nunique().unstack(fill_value=0)
    nodes = nodes.reindex(columns=[False, True], fill_value=0)
    better = found["run"].map(nodes[True] >= nodes[False]).astype(bool)
    kept: pd.DataFrame = found[found["alone"] == better].copy()
    return kept
