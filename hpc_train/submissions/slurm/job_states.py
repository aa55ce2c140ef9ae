"""Job ids -> states: from the queue, then the accounting, then only from the run's files."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from hpc_train.model.submission import JobReport, JobState, SlurmEndpoint
from hpc_train.submissions.slurm.requeue_history import with_history
from hpc_train.submissions.slurm.sacct import sacct
from hpc_train.submissions.slurm.slurm_commands import transient
from hpc_train.submissions.slurm.squeue import QueueEntry, squeue

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
