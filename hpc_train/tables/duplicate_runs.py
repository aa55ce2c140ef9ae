"""Records -> runs with the same measurements in each line: one job under two names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hpc_train.errors import ReportError
from hpc_train.model.expected_study import ExpectedRun
from hpc_train.model.metrics import RESULTS
from hpc_train.model.submission import JobState
from hpc_train.tables.record_arrays import RecordArrays

_TIMED = tuple(metric.record for metric in RESULTS)
# Fewer can be equal by chance: programs print few digits.
LEAST = 10
# Odd constants that spread bits: of SplitMix64 and of Knuth's multiplicative hash.
_SPREAD = tuple(
    map(
        np.uint64, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 6364136223846793005)
    )
)


def marks_of(fields: RecordArrays, runs: Sequence[ExpectedRun]) -> dict[str, int]:
    """Return a number for each foreign run that counts, computed from its measurements.

    The runs of the records are numbered as `runs` are. Those with few measurements have none.
    """
    ok = JobState.COMPLETED.value
    counted = np.zeros(len(fields.run.names) + 1, dtype=bool)
    counted[: len(runs)] = [run.topology is None and run.state == ok for run in runs]
    chosen = np.flatnonzero(counted[fields.run.codes])
    own = fields.take(chosen)
    timed = own.metric.among(_TIMED) >= 0
    enough = np.bincount(own.run.codes[timed], minlength=len(runs)) >= LEAST
    if not enough.any():
        return {}
    marks = _marks(own, len(runs))
    return {runs[run].run_id: int(marks[run]) for run in np.flatnonzero(enough).tolist()}


def refuse_copies(marks: Mapping[str, int]) -> None:
    """Refuse copies of one log as repetitions; `marks` are those of the runs by name.

    Raises:
        ReportError: two logs are copies; the message names both.
    """
    first: dict[int, str] = {}
    for other, mark in marks.items():
        one = first.setdefault(mark, other)
        if one != other:
            raise ReportError(
                f"{one} and {other} hold the same measurements, line by line: one job, not two "
                "repetitions",
                f"give one of them, or exclude one: --exclude '{other}=a copy of {one}'",
            )


def _marks(own: RecordArrays, runs: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Return a hash of the measurements and lines of each run, independent of their order."""
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
