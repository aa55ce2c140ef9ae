"""Runs whose qsub was not answered -> their jobs, by a variable that identifies each."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from hpc_train.model.run import RunFolder
from hpc_train.model.submission import JobReport, JobState, Submission
from hpc_train.submissions.pbs.job_arrays import subjob
from hpc_train.submissions.pbs.job_states import job_reports, no_answer, report
from hpc_train.submissions.pbs.pbs_commands import call_pbs, message_of
from hpc_train.submissions.pbs.qstat import qstat
from hpc_train.submissions.submission_file import owner, status_of

# The variable of a job that identifies it.
MARK = "HPCTRAIN_MARK"
# qsub may still be running: it waits for a slow server.
WITHIN_S = 120.0
_NUMBER = re.compile(r"[0-9]+")


def jobs_of(user: str) -> tuple[dict[str, dict[str, Any]], str]:
    """Return the attributes of a user's jobs, also finished ones, and the error of no answer."""
    done = call_pbs("qselect", "-x", "-u", user)
    if done.returncode != 0:
        return {}, message_of(done)
    answer = qstat(done.stdout.split())
    return answer.jobs, answer.failure


def with_mark(jobs: Mapping[str, Mapping[str, Any]], mark: str) -> tuple[str, ...]:
    """Return the jobs that have a mark, the oldest first."""
    found = [job for job, attributes in jobs.items() if mark in _variables(attributes)]
    return tuple(sorted(found, key=_number))


def _variables(attributes: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the marks among the variables of a job, of JSON or of text."""
    known = attributes.get("Variable_List")
    if isinstance(known, dict):
        return (str(known.get(MARK, "")),)
    return tuple(re.findall(rf"(?:^|,){MARK}=([^,]+)", str(known)))


def _number(job: str) -> int:
    match = _NUMBER.match(job)
    return int(match[0]) if match else 0


def search(runs: Mapping[RunFolder, Submission]) -> dict[RunFolder, JobReport]:
    """Return the states of runs without a job id; `job` has the id if it was found."""
    found: dict[RunFolder, JobReport] = {}
    elements: dict[RunFolder, str] = {}
    answers: dict[str, tuple[dict[str, dict[str, Any]], str]] = {}
    for run, submission in runs.items():
        user = owner(run.path)
        if user not in answers:
            answers[user] = jobs_of(user)
        jobs, failure = answers[user]
        # The request was accepted twice: the older job is used everywhere.
        mine = with_mark(jobs, submission.comment)
        if mine and not submission.native_id:
            found[run] = report(mine[0], jobs[mine[0]])
        elif mine:
            elements[run] = subjob(mine[0], submission.native_id)
        else:
            found[run] = _without(run, submission, failure)
    reports = job_reports(elements.values())
    return found | {
        run: msgspec.structs.replace(reports[job], job=job) for run, job in elements.items()
    }


def _without(run: RunFolder, submission: Submission, failure: str) -> JobReport:
    """Return the state of a run whose job was not found: recorded by itself, pending or lost."""
    status = status_of(run)
    if status is not None and status.job:
        return msgspec.structs.replace(job_reports([status.job])[status.job], job=status.job)
    if failure:
        return no_answer(failure)
    submitted = datetime.datetime.fromisoformat(submission.submitted)
    age_s = (datetime.datetime.now(datetime.timezone.utc) - submitted).total_seconds()
    if age_s < WITHIN_S:
        reason = f"qsub was called {age_s:.0f} s ago and has not printed a job id"
        reason += f"; without a job it is lost in {WITHIN_S - age_s:.0f} s"
        return JobReport(state=JobState.UNKNOWN, reason=reason)
    return JobReport(state=JobState.LOST, reason="PBS never received it: qsub was not answered")
