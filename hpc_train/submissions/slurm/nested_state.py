"""State of a run in a shared allocation: its own files show whether it was started."""

from __future__ import annotations

import msgspec

from hpc_train.model.run import RunFolder
from hpc_train.model.submission import JobReport, JobState
from hpc_train.submissions.submission_file import status_of


def turn(run: RunFolder, allocation: JobReport) -> JobReport | None:
    """Return the state of a run, given its allocation; None if its own files are sufficient.

    When a requeued allocation starts, it removes the files of runs that did not succeed.
    """
    status = status_of(run)
    ended = status is not None and status.ended is not None
    if ended and allocation.state is not JobState.PENDING:
        return _cut_off(allocation) if allocation.state.finished and run.cut_off.exists() else None
    if status is not None:
        return allocation
    if allocation.state is JobState.RUNNING:
        said = f"it waits for earlier runs in the allocation, job {allocation.job}"
        return msgspec.structs.replace(allocation, state=JobState.PENDING, reason=said, start=None)
    if allocation.state.finished:
        return _without_turn(allocation)
    return allocation


def _without_turn(allocation: JobReport) -> JobReport:
    """Return the state of a run that was not started in its allocation."""
    failed = allocation.state is JobState.FAILED
    said = f"{_name(allocation)} ended ({allocation.state.value}) before it started"
    reason = ": ".join(filter(None, (said, allocation.reason)))
    state = JobState.FAILED if failed else JobState.LOST
    return msgspec.structs.replace(allocation, state=state, reason=reason)


def _cut_off(allocation: JobReport) -> JobReport:
    said = f"{_name(allocation)} ended while it was running"
    return msgspec.structs.replace(allocation, reason=said)


def _name(allocation: JobReport) -> str:
    return f"its allocation, job {allocation.job}," if allocation.job else "its allocation"
