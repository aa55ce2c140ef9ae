"""Unfinished runs -> scancel, or the cancel function of their executor."""

from __future__ import annotations

from pathlib import Path

from hpc_train.errors import StoreError
from hpc_train.model.run import Run
from hpc_train.model.submission import JobState
from hpc_train.model.value import Value
from hpc_train.pipeline.run_states import executor_of, runs_below
from hpc_train.registry import find_batch_system
from hpc_train.runs.run_state_and_reason import never_submitted


def _runs(count: int) -> str:
    return "1 run is" if count == 1 else f"{count} runs are"


class Cancelled(Value, frozen=True, kw_only=True):
    """The runs that were cancelled, and those whose job id is unknown and that may continue."""

    runs: tuple[Run, ...]
    unknown_jobs: tuple[Run, ...]


def cancel(path: Path) -> Cancelled:
    """Cancel the runs at a path that are not known to have finished.

    Raises:
        StoreError: all of them have finished, or one shares its allocation with others.
        SubmitError: the scheduler refuses, or does not report that they ended.
    """
    runs = runs_below(path)
    unknown = [run for run in runs if _may_be_active(run)]
    active = [run for run in runs if run.state.active]
    active += [run for run in unknown if _has_job(run)]
    if not active:
        states = ", ".join(sorted({run.state.value for run in runs}))
        why = next((run.problem for run in runs if run.state is JobState.UNKNOWN), "")
        raise StoreError(f"{path.name}: nothing to cancel; {_runs(len(runs))} {states}", why)
    home = active[0].folder.path.parent
    submissions = {run.folder: run.submission for run in active if run.submission}
    if path != home and any(submission.shared for submission in submissions.values()):
        raise StoreError(
            f"{path.name}: it shares its allocation with the other runs of the study",
            f"hpctrain cancel {home.name} ends them all",
        )
    for name in {submission.executor for submission in submissions.values()}:
        selected = {run: s for run, s in submissions.items() if s.executor == name}
        executor_of(name).cancel(home, selected)
    unknown_jobs = tuple(run for run in unknown if run not in active)
    return Cancelled(runs=tuple(active), unknown_jobs=unknown_jobs)


def _has_job(run: Run) -> bool:
    """Whether a run of unknown state has a job id by which it can be cancelled."""
    submission = run.submission
    if submission is None or find_batch_system(submission.executor).this_machine:
        return False
    return submission.answered


def _may_be_active(run: Run) -> bool:
    """Whether the state of a run that was or may have been submitted is unknown."""
    return run.state is JobState.UNKNOWN and not never_submitted(run)
