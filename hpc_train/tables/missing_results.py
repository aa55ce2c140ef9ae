"""Measurements of runs without a result -> the reason, and the next step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hpc_train.model.metrics import RATE_RECORDS
from hpc_train.model.scaling_input import ExpectedStudy
from hpc_train.model.study import Warmup
from hpc_train.tables.group_values import packed
from hpc_train.tables.measurements import KINDS, PER_GPU, Rows
from hpc_train.tables.record_arrays import Ints, Mask
from hpc_train.tables.step_times import StepSummary


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
            yield run, _unusable(own.take(np.arange(low, high)))


def _in_warmup(seen: int, study: ExpectedStudy) -> str:
    # Only a study has a file in which the warm-up can be changed.
    change = "lower warmup.steps or run longer" if study.scaling else "run longer"
    return f"no measured step: {seen} in the log, warm-up {warmup_words(study.warmup)}; {change}"


def _unusable(rows: Rows) -> str:
    if not len(rows.run):
        return "no line with a time or rate that any parser knows; see docs/events.md"
    rates = rows.take(np.isin(rows.kind, [KINDS.index(name) for name in RATE_RECORDS]))
    if not len(rates.run):
        found = ", ".join(_in_order(rows.kind))
        return f"the log has {found}, but no time or rate of training; see docs/events.md"
    name = KINDS[rates.kind[0]]
    if (rates.scope == PER_GPU).any():
        return (
            f"{name} is per GPU, and no line says how many GPUs there were; "
            "let the run print world_size (docs/events.md)"
        )
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
