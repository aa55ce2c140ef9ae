"""The runs of a repetition are a block if nothing ran between them."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hpc_train.model.run import JobStatus, Run, RunFolder
from hpc_train.model.submission import JobState, Submission
from hpc_train.runs.expected_runs import run_blocks


def nested_run(run_id: str, started: float | None, job: str) -> Run:
    """Return a run in the shared allocation `job`."""
    return Run(
        folder=RunFolder(path=Path(run_id)),
        manifest=None,
        submission=Submission(
            executor="slurm", native_id=job, submitted="2026-11-21T03:00:00Z", shared=True
        ),
        status=None if started is None else JobStatus(started=started),
        state=JobState.COMPLETED,
    )


def blocks(*order: tuple[str, int, float | None]) -> dict[str, str]:
    """Return the blocks of runs of allocation 7, given as (run id, repetition, start)."""
    return run_blocks(
        (nested_run(name, start, "7"), repetition) for name, repetition, start in order
    )


def test_a_repetition_after_the_other_are_two_blocks() -> None:
    found = blocks(("4-r2", 2, 30.0), ("1-r1", 1, 10.0), ("4-r1", 1, 20.0), ("1-r2", 2, 40.0))
    assert found == {"1-r1": "7/1", "4-r1": "7/1", "4-r2": "7/2", "1-r2": "7/2"}


def test_overlapping_repetitions_are_no_blocks() -> None:
    assert blocks(("1-r1", 1, 10.0), ("1-r2", 2, 20.0), ("4-r1", 1, 30.0), ("4-r2", 2, 40.0)) == {}


def test_an_unknown_start_leaves_no_block_in_its_allocation() -> None:
    other = (nested_run("1-r3", 50.0, "8"), 3)
    own = ((nested_run("1-r1", 10.0, "7"), 1), (nested_run("4-r1", None, "7"), 1))
    assert run_blocks((*own, other)) == {"1-r3": "8/3"}


def test_a_job_of_its_own_has_no_block() -> None:
    run = nested_run("1-r1", 10.0, "7")
    assert run.submission is not None
    alone = msgspec.structs.replace(
        run, submission=msgspec.structs.replace(run.submission, shared=False)
    )
    unknown = msgspec.structs.replace(
        run, submission=msgspec.structs.replace(run.submission, native_id="")
    )
    assert run_blocks(((alone, 1), (unknown, 1))) == {}
