"""Runs whose submission was not answered -> their jobs, found again by their comment."""

from __future__ import annotations

import datetime
import pwd
from collections.abc import Mapping
from pathlib import Path

import msgspec

from hpc_train.model.run import RunFolder
from hpc_train.model.submission import JobReport, JobState, SlurmEndpoint, Submission
from hpc_train.submissions.slurm.job_states import job_reports, no_answer
from hpc_train.submissions.slurm.squeue import QueueAnswer, QueueEntry, squeue
from hpc_train.submissions.submission_file import status_of

# sbatch may still be running: it retries for a while if the controller is slow.
WITHIN_S = 120.0


def find(cluster: SlurmEndpoint, comment: str, user: str) -> tuple[tuple[str, ...], str]:
    """Return the jobs with a comment, the oldest first, and the error if Slurm did not respond."""
    answer = squeue(cluster, (), user)
    jobs = {entry.job.partition("_")[0] for entry in answer.entries if entry.comment == comment}
    return tuple(sorted(jobs, key=int)), answer.failure


def search(
    cluster: SlurmEndpoint, runs: Mapping[RunFolder, Submission]
) -> dict[RunFolder, JobReport]:
    """Return the states of runs without a recorded job id; `job` has the id if it was found."""
    found: dict[RunFolder, JobReport] = {}
    answers: dict[str, QueueAnswer] = {}
    for run, submission in runs.items():
        user = owner(run.path)
        answer = answers.get(user) or squeue(cluster, (), user)
        answers[user] = answer
        mine = [entry for entry in answer.entries if _is_job_of(entry, submission)]
        # The request was accepted twice: the older job is used everywhere.
        entry = min(mine, key=lambda one: int(one.job.partition("_")[0]), default=None)
        if entry is not None:
            found[run] = msgspec.structs.replace(entry.report, job=entry.job)
        else:
            found[run] = _without_entry(run, cluster, submission, answer.failure)
    return found


def owner(folder: Path) -> str:
    """Return the user who submitted the run of a folder."""
    uid = folder.stat().st_uid
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _is_job_of(entry: QueueEntry, submission: Submission) -> bool:
    if entry.comment != submission.comment:
        return False
    return entry.job.endswith(submission.native_id)


def _without_entry(
    run: RunFolder, cluster: SlurmEndpoint, submission: Submission, failure: str
) -> JobReport:
    """Return the state of a run whose job was not found: recorded by itself, pending or lost."""
    status = status_of(run)
    if status is not None and status.job:
        job = status.job
        since = submission.submitted[:10]
        report = job_reports(cluster, {job: submission.comment}, since)[job]
        return msgspec.structs.replace(report, job=job)
    if failure:
        return no_answer(failure)
    submitted = datetime.datetime.fromisoformat(submission.submitted)
    age_s = (datetime.datetime.now(datetime.timezone.utc) - submitted).total_seconds()
    if age_s < WITHIN_S:
        reason = f"sbatch was called {age_s:.0f} s ago and has not printed a job id"
        reason += f"; without a job it is lost in {WITHIN_S - age_s:.0f} s"
        return JobReport(state=JobState.UNKNOWN, reason=reason)
    return JobReport(state=JobState.LOST, reason="Slurm never received it: sbatch was not answered")
