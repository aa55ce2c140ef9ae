"""Runs -> states in Slurm, by job id or by the job's comment; else only from the run's files."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping

import msgspec

from hpc_train.model.run import RunFolder
from hpc_train.model.submission import JobReport, JobState, SlurmEndpoint, Submission
from hpc_train.submissions.slurm.requeue_history import with_history
from hpc_train.submissions.slurm.sacct import sacct
from hpc_train.submissions.slurm.slurm_commands import transient
from hpc_train.submissions.slurm.squeue import QueueAnswer, QueueEntry, squeue
from hpc_train.submissions.submission_file import owner, status_of

# Prefix of the comment that identifies a job.
MARK = "hpctrain:"


def job_reports(
    cluster: SlurmEndpoint, jobs: Mapping[str, str], since: str
) -> dict[str, JobReport]:
    """Return the states of jobs (id -> comment), with one squeue and, for the rest, one sacct.

    One further sacct asks for the history of jobs that may have been requeued.
    squeue keeps a job for MinJobAge (300 s by default) after its end. A job that neither lists is
    LOST, unless its own files have more information. `since` is the date (YYYY-MM-DD) of the oldest
    job.
    """
    answer = squeue(cluster, jobs)
    if answer.failure:
        return dict.fromkeys(jobs, no_answer(answer.failure))
    found = with_history(cluster, _listed(answer.entries, jobs), since)
    forgotten = [job for job in jobs if job not in found]
    rest = JobReport(state=JobState.LOST, reason="Slurm no longer knows it, and it recorded no end")
    if forgotten:
        past = sacct(cluster, forgotten, since)
        found.update({entry.job: _past(entry.report, entry.job) for entry in past.entries})
        if transient(past.failure):
            rest = no_answer(past.failure)
    return {job: found.get(job, rest) for job in jobs}


def _listed(entries: Collection[QueueEntry], jobs: Mapping[str, str]) -> dict[str, JobReport]:
    """Return the state of each job that is listed, by itself or as part of an array."""
    by_id = {entry.job: entry for entry in entries}
    found = {}
    for job, comment in jobs.items():
        entry = by_id.get(job) or by_id.get(job.partition("_")[0])
        if entry is not None and _is_same(entry.comment, comment):
            found[job] = _named(entry.report, job)
    return found


def _is_same(comment: str, expected: str) -> bool:
    """Whether a job belongs to the run: ids start again at 1 after a new installation of Slurm.

    A site may remove or change comments, so only another comment of hpctrain shows a different job.
    """
    return not expected or comment == expected or not comment.startswith(MARK)


def no_answer(failure: str) -> JobReport:
    """Return the state of every job if Slurm does not answer."""
    return JobReport(state=JobState.UNKNOWN, reason=f"Slurm does not answer: {failure}")


def _named(report: JobReport, job: str) -> JobReport:
    return msgspec.structs.replace(report, job=job)


def _past(report: JobReport, job: str) -> JobReport:
    """Use only final states of the accounting: it reports lost jobs as running."""
    if report.state.finished:
        return _named(report, job)
    reason = f"it is {report.state.value} in the accounting, but not in the queue"
    return JobReport(state=JobState.UNKNOWN, reason=reason, job=job)


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
