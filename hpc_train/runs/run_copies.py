"""Runs of a folder -> the runs without copies: `cp -r RUN OTHER` is not a second repetition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hpc_train.model.run import Run


class _Job(NamedTuple):
    """The values that identify a submission: the name of the run, and that of the job."""

    run_id: str
    created: str
    executor: str
    native_id: str
    submitted: str


def without_copies(runs: Sequence[Run]) -> tuple[tuple[Run, ...], tuple[str, ...]]:
    """Return the runs with one folder for each job, and a note on each other folder of the job.

    The folder with the name of the run is kept, else the first one. A run that was copied and then
    submitted again is another job. A run that was never submitted has no result and is not checked.
    """
    kept: dict[_Job, Run] = {}
    for run in sorted(runs, key=lambda run: not _has_own_name(run)):
        if (job := _job(run)) is not None:
            kept.setdefault(job, run)
    notes, found = [], []
    for run in runs:
        job = _job(run)
        first = run if job is None else kept[job]
        if job is None or first is run:
            found.append(run)
            continue
        notes.append(
            f"{run.folder.path.name} is left out: a copy of the folder {first.folder.path.name} "
            f"(run {job.run_id}, job {job.native_id}); one job, not two repetitions"
        )
    return tuple(found), tuple(notes)


def _has_own_name(run: Run) -> bool:
    return run.manifest is not None and run.manifest.run_id == run.folder.run_id


def _job(run: Run) -> _Job | None:
    manifest, submission = run.manifest, run.submission
    if manifest is None or submission is None or not submission.answered:
        return None
    return _Job(
        manifest.run_id,
        manifest.created,
        submission.executor,
        submission.native_id,
        submission.submitted,
    )
