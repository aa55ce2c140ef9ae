"""Runs -> the energy of their jobs, from energy.json, else from the accounting of their cluster."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from hpc_train.errors import LogParseError
from hpc_train.json_files import to_json
from hpc_train.model.expected_study import ExpectedStudy
from hpc_train.model.job_energy import JobEnergy
from hpc_train.model.run import JobStatus, Run
from hpc_train.model.submission import SlurmEndpoint, Submission
from hpc_train.registry import find_batch_system
from hpc_train.runs.log_result_cache import read_cache, write_cache
from hpc_train.submissions.slurm.job_energy import AccountedJob, accounted_jobs

# Largest difference between the clocks of the accounting and of a node.
_CLOCKS_S = 60.0
# The accounting receives the energy of a job some time after its end.
_LATE_S = 300.0
_decode = msgspec.json.Decoder(JobEnergy).decode


def with_job_energies(study: ExpectedStudy, runs: Sequence[Run], *, ask: bool) -> ExpectedStudy:
    """Return the study with the energy of each job [J] that is known.

    With `ask`, the accounting of each cluster is queried once for the finished jobs of which no
    answer is stored, and its answers are stored. Runs of a shared allocation have no energy of
    their own. A folder that cannot be written is not asked about: nothing could be stored.
    """
    known: dict[str, float | None] = {}
    unknown: list[Run] = []
    for run in runs:
        stored = _stored(run) if _is_job(run.submission) else None
        if stored is not None:
            known[run.folder.run_id] = stored.energy_j
        elif ask and _is_askable(run):
            unknown.append(run)
    known.update(_asked(unknown))
    if not any(known.values()):
        return study
    found = (msgspec.structs.replace(run, job_energy_j=known.get(run.run_id)) for run in study.runs)
    return msgspec.structs.replace(study, runs=tuple(found))


def _is_job(submission: Submission | None) -> bool:
    if submission is None or not find_batch_system(submission.executor).steps:
        return False
    return submission.answered and not submission.shared


def _stored(run: Run) -> JobEnergy | None:
    """Return the stored answer; None without one, or if it is damaged or that of another job."""
    try:
        stored = read_cache(run.folder.energy, _decode)
    except LogParseError:
        return None
    job = run.submission.native_id if run.submission else ""
    return stored if stored is not None and stored.job == job else None


def _is_askable(run: Run) -> bool:
    if not (run.state.finished and run.status is not None and _is_job(run.submission)):
        return False
    return os.access(run.folder.path, os.W_OK)


def _asked(runs: Sequence[Run]) -> Iterator[tuple[str, float | None]]:
    by_cluster: dict[SlurmEndpoint, dict[str, Run]] = defaultdict(dict)
    since: dict[SlurmEndpoint, str] = {}
    for run in runs:
        if run.submission is not None:
            cluster, day = run.submission.cluster, run.submission.submitted[:10]
            by_cluster[cluster][run.submission.native_id] = run
            since[cluster] = min(day, since.get(cluster, day))
    for cluster, jobs in by_cluster.items():
        yield from _answers(jobs, accounted_jobs(cluster, jobs, since[cluster]))


def _answers(
    jobs: Mapping[str, Run], accounted: Mapping[str, AccountedJob]
) -> Iterator[tuple[str, float | None]]:
    """Yield run and energy, and store each answer that will not change."""
    for job, run in jobs.items():
        found = accounted.get(job)
        if found is None or not _is_same(run.status, found):
            continue
        if found.energy_j is None and time.time() - found.end < _LATE_S:
            continue
        write_cache(run.folder.energy, to_json(JobEnergy(job=job, energy_j=found.energy_j)))
        yield run.folder.run_id, found.energy_j


def _is_same(status: JobStatus | None, job: AccountedJob) -> bool:
    """Whether a run was within a job: another cluster may have another job with this number."""
    if status is None:
        return False
    ended = status.started if status.ended is None else status.ended
    return job.start - _CLOCKS_S <= status.started and ended <= job.end + _CLOCKS_S
