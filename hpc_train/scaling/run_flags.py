"""Reasons to doubt the numbers of a run or a point."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from enum import Enum

import numpy as np
import pandas as pd

from hpc_train.base.metrics import RATE_RECORDS
from hpc_train.base.values import Value
from hpc_train.jobs.study import Warmup
from hpc_train.runs.expected_runs import ExpectedRun, ExpectedStudy, state_sizes
from hpc_train.scaling.measurements import LEAST_STEPS, PER_GPU, PER_RANK, whole_run
from hpc_train.scaling.record_arrays import Floats


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
    expected: Sequence[ExpectedRun],
    rows: pd.DataFrame,
    odd: pd.DataFrame,
    steps: Floats,
    ranks: Floats,
) -> list[tuple[Flag, ...]]:
    """Return the flags of each run; `odd` are the measurements that were left out."""
    flags: dict[int, list[Flag]] = defaultdict(list)
    for run in np.flatnonzero((steps > 0) & (steps < LEAST_STEPS)).tolist():
        flags[run].append(Flag(FlagCode.SHORT, f"{steps[run]:.0f} steps"))
    plain = rows[rows["variant"] == ""]
    own = plain[(plain["metric"] == "step_time") & (plain["scope"] == PER_RANK)]
    # Where one rank prints for all, no other is expected to.
    for run, timed in own.drop_duplicates(["run", "who"]).groupby("run").size().items():
        if 1 < timed < ranks[run]:
            text = f"steps of {timed} of {ranks[run]:.0f} ranks"
            flags[int(str(run))].append(Flag(FlagCode.RANKS, text))
    for metric in _SINGLE_VALUED:
        own = whole_run(plain[plain["metric"] == metric])
        own = own.drop_duplicates(["run", "value"])
        for run, several in own[own["run"].duplicated(keep=False)].groupby("run")["value"]:
            text = ", ".join(f"{value:g}" for value in several)
            flags[run].append(Flag(FlagCode.VARIES, f"{metric} {text}; last taken"))
    for run, lost in odd.sort_index().groupby("run"):
        counts = lost["metric"].astype(object).value_counts()
        names = ", ".join(f"{count} of {name}" for name, count in counts.items())
        flags[run].append(Flag(FlagCode.NOT_FINITE, f"{names} left out"))
    for run, one in enumerate(expected):
        if one.restarts:
            often = "once" if one.restarts == 1 else f"{one.restarts} times"
            flags[run].append(Flag(FlagCode.REQUEUED, f"restarted {often}"))
    return [tuple(flags.get(run, ())) for run in range(len(expected))]


def without_final_loss(records: pd.DataFrame) -> set[int]:
    """Return the runs whose last loss in the log is NaN or infinite.

    A loss that is finite again does not count: mixed precision skips steps that overflow.
    """
    lost = (records["metric"] == "not_finite") & (records["variant"] == "loss")
    own = records[lost | ((records["metric"] == "loss") & (records["variant"] == ""))]
    last = own[own["run"] >= 0].drop_duplicates(["run", "source"], keep="last")
    return set(last["run"][last["metric"] == "not_finite"])


def problem_of(rows: pd.DataFrame, seen: float, steps: float, study: ExpectedStudy) -> str:
    """Return why a run has no result, and the next step.

    `rows` are its measurements in the order of the log, of `seen` steps of which `steps` count.
    """
    if seen and not steps:
        # Only a study has a file in which the warm-up can be changed.
        change = "lower warmup.steps or " if any(run.topology for run in study.runs) else ""
        warmup = warmup_words(study.warmup)
        return f"no measured step: {seen:.0f} in the log, warm-up {warmup}; {change}run longer"
    if steps:
        return "step times are not positive; print seconds a step, measured by a monotonic clock"
    if rows.empty:
        return "no line with a time or rate that is known; hpctrain help my-report-is-empty"
    rates = rows[rows["metric"].isin(RATE_RECORDS)]
    if rates.empty:
        return f"the log has {', '.join(rows['metric'].unique())}{NO_RATE}"
    name = rates["metric"].iloc[0]
    if (rates["scope"] == PER_GPU).any():
        return f"{name} is per GPU, and no line says of how many; {state_sizes(len(study.runs))}"
    return (
        f"{name} of {rates['who'].nunique()} of several ranks only, or not "
        "positive; keep the log of every rank, or print the rate of all with scope global"
    )


def warmup_words(warmup: Warmup) -> str:
    """Return `10 steps`, `10 steps and 60 s`."""
    steps = f"{warmup.steps} step{'s' if warmup.steps != 1 else ''}"
    return f"{steps} and {warmup.seconds:g} s" if warmup.seconds else steps
