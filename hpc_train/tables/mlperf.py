"""Times of the runs of an MLPerf result -> its score."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hpc_train.errors import ReportError
from hpc_train.tables.magnitudes import LEAST, MOST

LEAST_RUNS = 3
_OLYMPIC = 5


def score(times: Sequence[float | None], factor: float = 1.0) -> float:
    """Return the olympic mean of the runs' times, times the factor of `scaling.json`.

    The best and the worst run are dropped; of 40 runs four of each. Three or four runs, which the
    largest benchmarks ask for, are all averaged. A failed run (None) took for ever: one is
    forgiven as the worst; more make the score infinite.

    Raises:
        ReportError: fewer than three runs, or a time that is none.
    """
    if len(times) < LEAST_RUNS:
        raise ReportError(
            f"{len(times)} runs make no MLPerf score; it takes {LEAST_RUNS} or more (5 or 10)"
        )
    wrong = [time for time in times if time is not None and not LEAST <= time <= MOST]
    if wrong:
        raise ReportError(f"{wrong[0]} is no time to train; it must be a number above 0")
    ordered = sorted(math.inf if time is None else time for time in times)
    dropped = max(1, len(ordered) // 10) if len(ordered) >= _OLYMPIC else 0
    kept = ordered[dropped : len(ordered) - dropped]
    return math.fsum(kept) / len(kept) * factor
