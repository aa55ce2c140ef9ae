"""Attributes of jobs of PBS -> states and reasons.

Codes and letters: OpenPBS 23.06, qstat(1B), pbs_job_attributes(7B), job.h; and its answers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from hpc_train.model.submission import JobReport, JobState
from hpc_train.submissions.pbs.qstat import qstat

_PENDING, _ENDED = frozenset("QWTHM"), frozenset("FX")
_ACTIVE = {
    **dict.fromkeys("REB", JobState.RUNNING),
    **dict.fromkeys("SU", JobState.SUSPENDED),
}
ENDING = "it is ending"
_FORGOTTEN = "PBS no longer knows it, and it recorded no end"
_TIMEOUT, _MEMORY = -29, (-26, -27)
# 256 or 128 and TERM; the substate of a job that was deleted.
_TERMINATED, _DELETED = (271, 143), 91
# Without a history, an ended subjob has the attributes of its array, and one of these comments.
_SUBJOB_ENDED, _SUBJOB_DELETED = ("Subjob finished", "Subjob failed"), "Subjob terminated"
_BEGAN = "Job Array Began"
_HOLDS = {"u": "its owner", "o": "an operator", "s": "PBS, perhaps after errors at its start"}
_NEVER = re.compile(r"Can Never Run: *([^ ].*)")
_NOT_NOW = re.compile(r"Not Running: *([^ ].*)")
_HOST = re.compile(r"(?:\A|(?<=[+(]))([^/+(]{1,255})/")


def job_reports(jobs: Collection[str]) -> dict[str, JobReport]:
    """Return the state of each job of one server, with one qstat call.

    A job that the server does not know is LOST, unless its own files have more information: its
    history of finished jobs may be short or off.
    """
    answer = qstat(jobs)
    if answer.failure:
        return dict.fromkeys(jobs, no_answer(answer.failure))
    lost = JobReport(state=JobState.LOST, reason=_FORGOTTEN)
    return {job: report(job, answer.jobs[job]) if job in answer.jobs else lost for job in jobs}


def no_answer(failure: str) -> JobReport:
    """Return the state of every job if PBS does not answer."""
    return JobReport(state=JobState.UNKNOWN, reason=f"PBS does not answer: {failure}")


def report(job: str, attributes: Mapping[str, Any]) -> JobReport:
    """Return the state of a job from its attributes."""
    letter = str(attributes.get("job_state", ""))
    nodes = node_list(str(attributes.get("exec_host", "")))
    start = _epoch(attributes.get("stime"))
    if letter in _PENDING:
        return JobReport(state=JobState.PENDING, reason=_waiting(letter, attributes), job=job)
    if letter in _ACTIVE:
        reason = ENDING if letter == "E" else ""
        return JobReport(state=_ACTIVE[letter], reason=reason, start=start, nodes=nodes, job=job)
    if letter not in _ENDED:
        return JobReport(
            state=JobState.UNKNOWN, reason=f"unknown state of PBS: {letter!r}", job=job
        )
    if attributes.get("comment") in _SUBJOB_ENDED:
        # The run's own files have more information.
        return JobReport(state=JobState.LOST, reason=_FORGOTTEN)
    state, reason = _end(attributes)
    return JobReport(state=state, reason=reason, start=start, nodes=nodes, job=job)


def _waiting(letter: str, attributes: Mapping[str, Any]) -> str:
    comment = str(attributes.get("comment", ""))
    holds = [_HOLDS[one] for one in str(attributes.get("Hold_Types", "")) if one in _HOLDS]
    # A subjob of an array that is held is queued, with the holds of the array.
    if letter == "H" or holds:
        by = f" by {' and '.join(holds)}" if holds else ""
        return f"it is held{by}; qrls releases it"
    if never := _NEVER.search(comment):
        return f"it can never run here: {never[1]}; cancel it, and request less"
    if now := _NOT_NOW.search(comment):
        return f"it waits: {now[1]}"
    return f"PBS says: {comment}" if comment and not comment.startswith(_BEGAN) else ""


def _end(attributes: Mapping[str, Any]) -> tuple[JobState, str]:
    code = _whole(attributes.get("Exit_status"))
    deleted = _whole(attributes.get("substate")) == _DELETED
    if attributes.get("comment") == _SUBJOB_DELETED:
        return JobState.CANCELLED, "deleted"
    if code is None or (code in _TERMINATED and deleted):
        by = str(attributes.get("comment", "")).rpartition(" terminated by ")[2]
        return JobState.CANCELLED, f"deleted by {by}" if code is not None and by else "deleted"
    if code == 0:
        return JobState.COMPLETED, ""
    if code == _TIMEOUT:
        return JobState.TIMEOUT, "it exceeded its walltime"
    if code in _MEMORY:
        return JobState.OUT_OF_MEMORY, "it used more memory than it requested"
    return JobState.FAILED, _failure(code, str(attributes.get("comment", "")))


def _failure(code: int, comment: str) -> str:
    if code < 0:
        return f"PBS ended it with {code}: {comment}" if comment else f"PBS ended it with {code}"
    signal = code - 256 if code > 256 else code - 128
    return f"signal {signal}" if 0 < signal < 65 else f"exit code {code}"


def node_list(exec_host: str) -> str:
    """Return the nodes in `n1/0+n2/0*8`, each once, separated by commas."""
    return ",".join(dict.fromkeys(_HOST.findall(exec_host)))


def _whole(value: object) -> int | None:
    """Return a whole number, which the text form and some builds write as text."""
    try:
        return int(str(value))
    except ValueError:
        return None


def _epoch(value: object) -> float | None:
    """Return PBS's local time (`Sun Nov 22 18:49:00 2026`) in seconds since the epoch."""
    try:
        return datetime.strptime(str(value), "%a %b %d %H:%M:%S %Y").timestamp()
    except (ValueError, OverflowError):
        return None
