"""Measurements -> flags of each run, as `code: detail`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pandas as pd

from hpc_train.model.measurement import ExpectedRun
from hpc_train.tables.columns import Ints
from hpc_train.tables.groups import counts, packed
from hpc_train.tables.intervals import Floats
from hpc_train.tables.measurements import METRICS, PER_RANK, Rows
from hpc_train.tables.scalars import contradictions
from hpc_train.tables.steps import LEAST_STEPS

LOSS_LOST = "not finite: loss at the end"
_SAID_ONCE = ("accuracy", "global_batch_size", "world_size", "samples_per_second")


def run_flags(
    expected: Sequence[ExpectedRun], rows: Rows, odd: Rows, steps: Ints, ranks: Floats
) -> list[tuple[str, ...]]:
    """Return the flags of each run; `odd` are the measurements that were left out."""
    runs = len(expected)
    flags: dict[int, list[str]] = defaultdict(list)
    for run in np.flatnonzero((steps > 0) & (steps < LEAST_STEPS)).tolist():
        flags[run].append(f"short: {steps[run]} steps")
    heard = _timed_ranks(rows, runs)
    for run in np.flatnonzero((heard > 0) & (heard < ranks)).tolist():
        flags[run].append(f"ranks: steps of {heard[run]} of {ranks[run]:.0f} ranks")
    for metric in _SAID_ONCE:
        for run, values in contradictions(rows, metric).items():
            said = ", ".join(f"{value:g}" for value in values)
            flags[run].append(f"varies: {metric} {said}; last taken")
    for run in np.unique(odd.run).tolist():
        flags[run].append(_left_out(odd.take(odd.run == run)))
    for run, one in enumerate(expected):
        if one.restarts:
            flags[run].append(f"requeued: restarted {one.restarts} times")
    return [tuple(flags.get(run, ())) for run in range(runs)]


def with_lost(flags: Sequence[tuple[str, ...]], lost: Ints) -> list[tuple[str, ...]]:
    """Return the flags, with one more for runs that ended without a finite loss."""
    which = set(lost.tolist())
    return [(*own, LOSS_LOST) if run in which else own for run, own in enumerate(flags)]


def _timed_ranks(rows: Rows, runs: int) -> Ints:
    timed = rows.named("step_time")
    timed = timed.take(timed.scope == PER_RANK)
    # Sorting a million numbers costs more than looking each one up.
    first = ~pd.Series(packed(timed.run, timed.who)).duplicated().to_numpy()
    return counts(timed.run[first], runs)


def _left_out(odd: Rows) -> str:
    kinds = pd.Series(odd.kind[np.argsort(odd.place)]).value_counts()
    names = ", ".join(f"{count} of {METRICS[int(kind)]}" for kind, count in kinds.items())
    return f"not finite: {names} left out"
