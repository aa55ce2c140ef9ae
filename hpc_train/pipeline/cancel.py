"""Runs that have not finished -> scancel, or whatever their executor has."""

from __future__ import annotations

from pathlib import Path

from hpc_train.errors import StoreError
from hpc_train.model.run import Run
from hpc_train.model.submission import JobState
from hpc_train.model.value import Value
from hpc_train.pipeline.query import executor_of, runs_below
from hpc_train.runs.state import was_never_handed_over


def _runs(count: int) -> str:
    return "1 run is" if count == 1 else f"{count} runs are"


class Cancelled(Value, frozen=True, kw_only=True):
    """The runs that were cancelled, and those that may go on: nobody can say which job they are."""

    runs: tuple[Run, ...]
    left: tuple[Run, ...]


def cancel(path: Path) -> Cancelled:
    """Cancel the runs at a path that have not finished, as far as anybody knows.

    Raises:
        StoreError: all of them have finished, or one shares its allocation with others.
        SubmitError: the scheduler refuses, or does not say that they ended.
    """
    runs = runs_below(path)
    unknown = [run for run in runs if _may_go_on(run)]
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
        mine = {run: s for run, s in submissions.items() if s.executor == name}
        executor_of(name).cancel(home, mine)
    left = tuple(run for run in unknown if run not in active)
    return Cancelled(runs=tuple(active), left=left)


def _has_job(run: Run) -> bool:
    """Whether a scheduler knows by which id to end a run of which it says nothing now."""
    submission = run.submission
    return submission is not None and submission.executor != "local" and submission.answered


def _may_go_on(run: Run) -> bool:
    """Whether nobody can say how a run stands that was, or may have been, handed over."""
    return run.state is JobState.UNKNOWN and not was_never_handed_over(run)
