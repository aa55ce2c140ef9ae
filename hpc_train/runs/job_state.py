"""The state of a run, from the scheduler's answer, status.json and submission.json.

Executors and run folders read these; this module interprets them, also in a shared allocation.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import msgspec

from hpc_train.base.decode import load_data
from hpc_train.base.value import Value
from hpc_train.runs.run import JobStatus
from hpc_train.runs.submission import JobReport, JobState, Submission

# Largest difference between the clocks of a scheduler and of its nodes.
_CLOCKS_S = 5.0
# States that contain less information about the end than the exit code in status.json.
_VAGUE = (None, JobState.COMPLETED, JobState.LOST)


class _Word(Value, frozen=True, kw_only=True):
    state: JobState
    meaning: str = ""


class _File(Value, frozen=True, kw_only=True):
    schema: Literal[1]
    states: dict[str, _Word]


@cache
def _words() -> dict[str, _Word]:
    return load_data("slurm_states.yaml", _File).states


def is_ending(state_text: str) -> bool:
    """Whether a sentence of `job_state` means that the job is ending."""
    return state_text == _words()["COMPLETING"].meaning


def job_state(word: str) -> tuple[JobState, str]:
    """Return the state for a state of Slurm and, if it contains more information, a sentence.

    An unknown word is not final.
    """
    found = _words().get(word)
    if found is not None:
        return found.state, found.meaning
    name, _, tail = word.strip().partition(" ")
    if name == "CANCELLED" and tail.startswith("by "):
        return JobState.CANCELLED, f"cancelled by user id {tail[3:].strip()}"
    return JobState.UNKNOWN, f"unknown state of Slurm: {word.strip()!r}"


def nested_report(
    status: JobStatus | None, cut_off: bool, allocation: JobReport
) -> JobReport | None:
    """Return the answer for a run in a shared allocation; None if its status.json is sufficient.

    `cut_off`: the allocation ended while the run was running. When a requeued allocation starts, it
    removes the files of runs that did not succeed.
    """
    ended = allocation.state.finished
    if has_ended(status) and allocation.state is not JobState.PENDING:
        reason = f"{_name(allocation)} ended while it was running"
        return msgspec.structs.replace(allocation, reason=reason) if ended and cut_off else None
    if status is not None:
        return allocation
    if allocation.state is JobState.RUNNING:
        reason = f"it waits for earlier runs in the allocation, job {allocation.job}"
        return msgspec.structs.replace(
            allocation, state=JobState.PENDING, reason=reason, start=None
        )
    return _not_started(allocation) if ended else allocation


def _not_started(allocation: JobReport) -> JobReport:
    """Return the state of a run that was not started in its allocation."""
    failed = allocation.state is JobState.FAILED
    message = f"{_name(allocation)} ended ({allocation.state.value}) before it started"
    reason = ": ".join(filter(None, (message, allocation.reason)))
    state = JobState.FAILED if failed else JobState.LOST
    return msgspec.structs.replace(allocation, state=state, reason=reason)


def _name(allocation: JobReport) -> str:
    return f"its allocation, job {allocation.job}," if allocation.job else "its allocation"


def decide(
    report: JobReport | None,
    status: JobStatus | None,
    submission: Submission | None,
    nested_limit_s: float | None = None,
) -> JobState:
    """Decide among the scheduler's answer, status.json and submission.json; the first row wins.

    | fact                                                        | state                      |
    |-------------------------------------------------------------|----------------------------|
    | status.json: ended with exit code 0                         | COMPLETED                  |
    | scheduler: active; it may have requeued the job             | the scheduler's            |
    | the same, but PENDING, and a newer status.json              | RUNNING                    |
    | status.json: ended; the others have no exact state          | FAILED, or TIMEOUT         |
    | submission.json: a recorded final state                     | that state                 |
    | scheduler: not active                                       | the scheduler's            |
    | none of them                                                | UNKNOWN                    |

    None as `report` means no answer. A failure at or after `nested_limit_s`, the time limit of a
    run in a shared allocation, is a TIMEOUT. Without submission.json only status.json and an active
    scheduler decide.
    """
    status = current(status, report)
    if has_ended(status) and status is not None and status.exit_code == 0:
        return JobState.COMPLETED
    if report is not None and report.state.active:
        pending = report.state is JobState.PENDING
        return JobState.RUNNING if pending and status is not None else report.state
    settled = submission.state if submission is not None else None
    recorded = settled or (report.state if report is not None else None)
    # A scheduler that does not respond may still have the job, so UNKNOWN is no vague state.
    if has_ended(status) and recorded in _VAGUE:
        state = JobState.FAILED
    else:
        state = JobState.UNKNOWN if submission is None or recorded is None else recorded
    timed_out = state is JobState.FAILED and _out_of_time(status, nested_limit_s)
    return JobState.TIMEOUT if timed_out else state


def has_ended(status: JobStatus | None) -> bool:
    """Whether the job script wrote its end."""
    return status is not None and status.ended is not None


def is_settled(status: JobStatus | None, submission: Submission | None) -> bool:
    """Whether the files contain a final state, so that the scheduler need not be queried."""
    succeeded = has_ended(status) and status is not None and status.exit_code == 0
    return succeeded or (submission is not None and submission.state is not None)


def current(status: JobStatus | None, report: JobReport | None) -> JobStatus | None:
    """Return status.json, or None if it is that of an attempt before the job was requeued."""
    if status is None or report is None or not report.state.active:
        return status
    if report.state is JobState.PENDING:
        stale = report.queried is None or status.started <= report.queried
    else:
        stale = report.start is not None and status.started < report.start - _CLOCKS_S
    return None if stale else status


def _out_of_time(status: JobStatus | None, limit: float | None) -> bool:
    """Whether the run was ended at its own time limit, inside an allocation that continued."""
    if limit is None or status is None or status.ended is None:
        return False
    # The limit counts from shortly before the script records its start.
    return status.exit_code != 0 and status.ended - status.started >= limit - 1
