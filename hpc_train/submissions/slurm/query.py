"""Job ids -> how they stand: the queue, then the accounting, then nothing but their own files."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from hpc_train.model.submission import Cluster, JobState, Standing
from hpc_train.submissions.slurm.commands import transient
from hpc_train.submissions.slurm.sacct import sacct
from hpc_train.submissions.slurm.squeue import squeue


def standings(cluster: Cluster, jobs: Collection[str], since: str) -> dict[str, Standing]:
    """Say how jobs stand, with one squeue and, for those that it has forgotten, one sacct.

    squeue keeps a job for MinJobAge (300 s by default) after its end. A job that nobody knows is
    LOST, unless its own files say more. `since` is the date (YYYY-MM-DD) of the oldest job.
    """
    answer = squeue(cluster, jobs)
    if answer.failure:
        return dict.fromkeys(jobs, silence(answer.failure))
    found = {entry.job: _named(entry.standing, entry.job) for entry in answer.entries}
    forgotten = [job for job in jobs if job not in found]
    rest = Standing(state=JobState.LOST, reason="Slurm has forgotten it, and it recorded no end")
    if forgotten:
        past = sacct(cluster, forgotten, since)
        found.update({entry.job: _past(entry.standing, entry.job) for entry in past.entries})
        if transient(past.failure):
            rest = silence(past.failure)
    return {job: found.get(job, rest) for job in jobs}


def silence(failure: str) -> Standing:
    """Return how every job stands when Slurm does not answer."""
    return Standing(state=JobState.UNKNOWN, reason=f"Slurm does not answer: {failure}")


def _named(standing: Standing, job: str) -> Standing:
    return msgspec.structs.replace(standing, job=job)


def _past(standing: Standing, job: str) -> Standing:
    """Take only an end from the accounting: it calls a job running that the queue has lost."""
    if standing.state.finished:
        return _named(standing, job)
    said = f"the accounting says {standing.state.value}, but the queue does not know it"
    return Standing(state=JobState.UNKNOWN, reason=said, job=job)
