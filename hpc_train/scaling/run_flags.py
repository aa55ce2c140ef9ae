"""Reasons to doubt the numbers of a run or a point."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import Enum

import numpy as np
import pandas as pd

from hpc_train.base.metrics import RATE_RECORDS
from hpc_train.base.value import Value
from hpc_train.jobs.study import Warmup
from hpc_train.runs.expected_runs import ExpectedRun, ExpectedStudy, state_sizes
from hpc_train.scaling.group_reductions import Floats, counts, starts
from hpc_train.scaling.measurements import GLOBAL, KINDS, PER_GPU, PER_RANK, Rows
from hpc_train.scaling.record_arrays import Ints, Mask, RecordArrays, packed
from hpc_train.scaling.step_times import LEAST_STEPS, StepSummary


class FlagCode(str, Enum):
    """The kinds of flags in the column `flags`; docs/reading-a-report.md explains them."""

    ONE_RUN = "n=1"
    ONE_BASELINE_RUN = "baseline n=1"
    NO_SPREAD = "no spread"
    ONE_SESSION = "one session"
    SHORT = "short"
    SLOW_STEPS = "slow steps"
    GATE = "gate"
    RANKS = "ranks"
    SUPERLINEAR = "superlinear"
    VARIES = "varies"
    ACCURACY = "accuracy"
    LOSS = "loss"
    WHOLE_SECONDS = "whole seconds"
    UNMEASURED = "no result"
    NOT_FINITE = "not finite"
    REQUEUED = "requeued"
    EFFICIENCY = "efficiency"
    CONTRADICTION = "contradiction"
    MEMORY = "memory"
    MFU = "MFU"
    UNIT = "unit"
    THROTTLED = "throttled"
    TRANSPORT = "transport"


# The number itself is wrong, or was not measured under the conditions of its series.
IMPLAUSIBLE = frozenset(
    {
        FlagCode.EFFICIENCY, FlagCode.CONTRADICTION, FlagCode.MEMORY, FlagCode.MFU,
        FlagCode.UNIT, FlagCode.THROTTLED, FlagCode.TRANSPORT,
    }
)  # fmt: skip


class Flag(Value, frozen=True, order=True):
    """The kind of the doubt, and its detail; in files it is the text `code: detail`."""

    code: FlagCode
    detail: str

    def __str__(self) -> str:
        """Return the text that files contain."""
        return f"{self.code.value}: {self.detail}"


def flag_of(text: str) -> Flag | None:
    """Return the flag that was written as this text; None if its kind is not known."""
    name, _, detail = text.partition(": ")
    return Flag(FlagCode(name), detail) if name in set(FlagCode) else None


LOSS_LOST = Flag(FlagCode.NOT_FINITE, "loss at the end")


NO_RATE = ", but no time or rate of training; see hpctrain help events"
_SINGLE_VALUED = ("global_batch_size", "world_size", "samples_per_second")


def run_flags(
    expected: Sequence[ExpectedRun], rows: Rows, odd: Rows, steps: Ints, ranks: Floats
) -> list[tuple[Flag, ...]]:
    """Return the flags of each run; `odd` are the measurements that were left out."""
    runs = len(expected)
    flags: dict[int, list[Flag]] = defaultdict(list)
    for run in np.flatnonzero((steps > 0) & (steps < LEAST_STEPS)).tolist():
        flags[run].append(Flag(FlagCode.SHORT, f"{steps[run]} steps"))
    timed = _timed_ranks(rows, runs)
    # Where one rank prints for all, no other is expected to.
    for run in np.flatnonzero((timed > 1) & (timed < ranks)).tolist():
        flags[run].append(Flag(FlagCode.RANKS, f"steps of {timed[run]} of {ranks[run]:.0f} ranks"))
    for metric in _SINGLE_VALUED:
        for run, values in _contradictions(rows, metric).items():
            text = ", ".join(f"{value:g}" for value in values)
            flags[run].append(Flag(FlagCode.VARIES, f"{metric} {text}; last taken"))
    for run in np.unique(odd.run).tolist():
        flags[run].append(_left_out(odd.take(odd.run == run)))
    for run, one in enumerate(expected):
        if one.restarts:
            often = "once" if one.restarts == 1 else f"{one.restarts} times"
            flags[run].append(Flag(FlagCode.REQUEUED, f"restarted {often}"))
    return [tuple(flags.get(run, ())) for run in range(runs)]


def _contradictions(rows: Rows, metric: str) -> dict[int, tuple[float, ...]]:
    """Return the contradicting values of a metric that can have only one value, by run."""
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


def _timed_ranks(rows: Rows, runs: int) -> Ints:
    timed = rows.named("step_time")
    timed = timed.take(timed.scope == PER_RANK)
    # Sorting a million numbers costs more than looking each one up.
    first = ~pd.Series(packed(timed.run, timed.who)).duplicated().to_numpy()
    return counts(timed.run[first], runs)


def _left_out(odd: Rows) -> Flag:
    kinds = pd.Series(odd.kind[np.argsort(odd.place)]).value_counts()
    names = ", ".join(f"{count} of {KINDS[int(kind)]}" for kind, count in kinds.items())
    return Flag(FlagCode.NOT_FINITE, f"{names} left out")


def without_final_loss(fields: RecordArrays, runs: int) -> set[int]:
    """Return the runs whose last loss in the log is NaN or infinite.

    A loss that is finite again does not count: mixed precision skips steps that overflow.
    """
    lost = (fields.metric.among(["not_finite"]) == 0) & (fields.variant.among(["loss"]) == 0)
    if not lost.any():
        return set()
    stated = (fields.metric.among(["loss"]) == 0) & (fields.variant.among([""]) == 0)
    places = np.flatnonzero((lost | stated) & (fields.run.codes < runs))
    key = pd.Series(packed(fields.run.codes[places], fields.source.codes[places]))
    last = places[~key.duplicated(keep="last").to_numpy()]
    return set(fields.run.codes[last[lost[last]]].tolist())


def problems(
    rows: Rows, chosen: Mask, steps: StepSummary, study: ExpectedStudy
) -> Iterator[tuple[int, str]]:
    """Yield each selected run with the reason why it has no result, and the next step."""
    own = rows.take(chosen[rows.run])
    own = own.take(np.argsort(packed(own.run, own.place), kind="stable"))
    for run in np.flatnonzero(chosen).tolist():
        if steps.seen[run] and not steps.steps[run]:
            yield run, _in_warmup(int(steps.seen[run]), study)
        elif steps.steps[run]:
            yield (
                run,
                "step times are not positive; print seconds a step, measured by a monotonic clock",
            )
        else:
            low, high = np.searchsorted(own.run, [run, run + 1])
            yield run, _unusable(own.take(np.arange(low, high)), len(study.runs))


def _in_warmup(seen: int, study: ExpectedStudy) -> str:
    # Only a study has a file in which the warm-up can be changed.
    change = (
        "lower warmup.steps or run longer"
        if any(run.topology for run in study.runs)
        else "run longer"
    )
    return f"no measured step: {seen} in the log, warm-up {warmup_words(study.warmup)}; {change}"


def _unusable(rows: Rows, logs: int) -> str:
    if not len(rows.run):
        return "no line with a time or rate that any parser knows; see hpctrain help events"
    rates = rows.take(np.isin(rows.kind, [KINDS.index(name) for name in RATE_RECORDS]))
    if not len(rates.run):
        found = ", ".join(_in_order(rows.kind))
        return f"the log has {found}{NO_RATE}"
    name = KINDS[rates.kind[0]]
    if (rates.scope == PER_GPU).any():
        return f"{name} is per GPU, and no line says of how many; {state_sizes(logs)}"
    return (
        f"{name} of {len(np.unique(rates.who))} of several ranks only, or not "
        "positive; keep the log of every rank, or print the rate of all with scope global"
    )


def _in_order(kinds: Ints) -> Sequence[str]:
    found, first = np.unique(kinds, return_index=True)
    return [KINDS[kind] for kind in found[np.argsort(first)]]


def warmup_words(warmup: Warmup) -> str:
    """Return `10 steps`, `10 steps and 60 s`."""
    steps = f"{warmup.steps} step{'s' if warmup.steps != 1 else ''}"
    return f"{steps} and {warmup.seconds:g} s" if warmup.seconds else steps
