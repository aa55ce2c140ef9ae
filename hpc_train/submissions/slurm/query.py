"""Job ids -> how they stand: the queue, then the accounting, then nothing but their own files."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from hpc_train.model.submission import Cluster, JobState, Standing
from hpc_train.submissions.slurm.commands import transient
from hpc_train.submissions.slurm.sacct import sacct
from hpc_train.submissions.slurm.squeue import Entry, squeue

# How the comment begins by which a job is found again.
MARK = "hpctrain:"


def standings(cluster: Cluster, jobs: Mapping[str, str], since: str) -> dict[str, Standing]:
    """Say how jobs (id -> comment) stand, with one squeue and, for those it forgot, one sacct.

    squeue keeps a job for MinJobAge (300 s by default) after its end. A job that nobody knows is
    LOST, unless its own files say more. `since` is the date (YYYY-MM-DD) of the oldest job.
    """
    answer = squeue(cluster, jobs)
    if answer.failure:
        return dict.fromkeys(jobs, silence(answer.failure))
    found = _ours(answer.entries, jobs)
    forgotten = [job for job in jobs if job not in found]
    rest = Standing(state=JobState.LOST, reason="Slurm has forgotten it, and it recorded no end")
    if forgotten:
        past = sacct(cluster, forgotten, since)
        found.update({entry.job: _past(entry.standing, entry.job) for entry in past.entries})
        if transient(past.failure):
            rest = silence(past.failure)
    return {job: found.get(job, rest) for job in jobs}


def _ours(entries: Collection[Entry], jobs: Mapping[str, str]) -> dict[str, Standing]:
    """Return the standing of each job that is there, by itself or as part of a whole array."""
    there = {entry.job: entry for entry in entries}
    found = {}
    for job, comment in jobs.items():
        entry = there.get(job) or there.get(job.partition("_")[0])
        if entry is not None and _is_same(entry.comment, comment):
            found[job] = _named(entry.standing, job)
    return found


def _is_same(comment: str, ours: str) -> bool:
    """Whether a job is ours: ids start again at 1 when a Slurm is set up anew.

    A site may drop or change comments, so only another one of hpctrain's tells a stranger.
    """
    return not ours or comment == ours or not comment.startswith(MARK)


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
