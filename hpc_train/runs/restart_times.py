"""The starts of a job that was queued again -> how long they ran, and how long restarts cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from hpc_train.model.run import JobStart, JobStatus


class _Span(NamedTuple):
    """The part of a start that later starts keep: from its resume to its last checkpoint [s]."""

    begun: float
    kept: float | None


def run_time_s(
    starts: Sequence[JobStart], status: JobStatus, now: float | None = None
) -> float | None:
    """Return the seconds that all starts ran together, while the last one runs until `now`.

    A start whose end is not known, because its node was lost, counts until its last checkpoint.
    """
    ended = now if status.ended is None else status.ended
    if ended is None:
        return None
    earlier = sum(_ran_s(start) for start in starts if start.restart < status.restart_count)
    return earlier + max(0.0, ended - status.started)


def time_lost_s(starts: Sequence[JobStart], status: JobStatus) -> float | None:
    """Return the seconds from each last checkpoint until the next start has resumed, together.

    They are the work that is repeated, the wait in the queue, and the start of the ranks; 0 without
    a restart. A start that saved nothing is lost from its resume on. None if a start left no line
    or the time of its checkpoint is not known. The time of a resume is that of
    `hpc_train.workload.checkpoint`; without it, the start begins with the script.
    """
    if [start.restart for start in starts[: status.restart_count]] != [
        *range(status.restart_count)
    ]:
        return None
    spans = list(_spans(starts, status))
    if any(before.kept is None for before, _ in pairwise(spans)):
        return None
    return sum(max(0.0, after.begun - (before.kept or 0.0)) for before, after in pairwise(spans))


def _ran_s(start: JobStart) -> float:
    last = start.ended if start.ended is not None else start.saved
    return 0.0 if last is None else max(0.0, last - start.started)


def _spans(starts: Sequence[JobStart], status: JobStatus) -> Iterator[_Span]:
    for start in starts:
        resumed, saved = (_within(start, time) for time in (start.resumed, start.saved))
        begun = start.started if resumed is None else resumed
        known = start.saved is not None or start.step == 0
        yield _Span(begun, (begun if saved is None else saved) if known else None)
    if not starts or starts[-1].restart < status.restart_count:
        yield _Span(status.started, None)


def _within(start: JobStart, time: float | None) -> float | None:
    """Return the time of a file, unless an earlier start wrote it."""
    return time if time is not None and time >= start.started else None
