"""Records -> runs that hold the same measurements, line by line: one job under two names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hpc_train.errors import ReportError
from hpc_train.model.measurement import ExpectedRun
from hpc_train.model.submission import JobState
from hpc_train.tables.columns import Columns

_TIMED = ("step_time", "samples_per_second", "tokens_per_second", "epoch_time", "time_to_train")
# Fewer can be equal by chance: programs print few digits.
LEAST = 10
# Odd constants that spread bits: of SplitMix64 and of Knuth's multiplicative hash.
_SPREAD = tuple(
    map(
        np.uint64, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 6364136223846793005)
    )
)


def refuse_copies(fields: Columns, runs: Sequence[ExpectedRun]) -> None:
    """Refuse foreign logs that count as repetitions but are copies; runs are numbered as `runs`.

    Raises:
        ReportError: it names both.
    """
    ok = JobState.COMPLETED.value
    counts = [run.topology is None and run.state == ok for run in runs]
    counted = np.array([*counts, *[False] * len(fields.run.names)], dtype=bool)
    chosen = np.flatnonzero(counted[fields.run.codes])
    own = fields.take(chosen)
    timed = own.metric.among(_TIMED) >= 0
    enough = np.bincount(own.run.codes[timed], minlength=len(runs)) >= LEAST
    marks = _marks(own, len(runs))
    first: dict[int, int] = {}
    for run in np.flatnonzero(enough).tolist():
        same = first.setdefault(int(marks[run]), run)
        if same != run:
            one, other = runs[same].run_id, runs[run].run_id
            raise ReportError(
                f"{one} and {other} hold the same measurements, line by line: one job, not two "
                "repetitions",
                f"give one of them, or exclude one: --exclude '{other}=a copy of {one}'",
            )


def _marks(own: Columns, runs: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Return a number for each run that its measurements and their lines make, in any order."""
    whole = (own.line, own.step, own.rank, own.metric.codes, own.variant.codes)
    mark = own.value.view(np.uint64)
    with np.errstate(over="ignore"):
        for place, column in enumerate(whole):
            mark = (mark ^ (mark >> np.uint64(29))) * _SPREAD[place % len(_SPREAD)]
            mark = mark + column.astype(np.int64).view(np.uint64)
        mark = (mark ^ (mark >> np.uint64(31))) * _SPREAD[1]
    found = np.zeros(runs, dtype=np.uint64)
    np.add.at(found, own.run.codes, mark ^ (mark >> np.uint64(27)))
    return found
