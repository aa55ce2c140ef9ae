"""Of a run that was tried again, the last attempt counts."""

from __future__ import annotations

from pathlib import Path

from hpc_train.model.run import Run, RunFolder
from hpc_train.model.submission import JobState
from hpc_train.run_table import counts, earlier


def run(name: str, state: JobState) -> Run:
    folder = RunFolder(path=Path(name))
    return Run(folder=folder, manifest=None, submission=None, status=None, state=state)


RUNS = [
    run("s-r1", JobState.FAILED),
    run("s-r1.3", JobState.COMPLETED),
    run("s-r1.2", JobState.TIMEOUT),
    run("s-r2", JobState.RUNNING),
    run("s-r10.2", JobState.COMPLETED),
    run("single", JobState.FAILED),
]


def test_earlier_attempts_are_those_before_the_last() -> None:
    assert earlier(RUNS) == {"s-r1", "s-r1.2"}
    assert earlier(RUNS[::-1]) == {"s-r1", "s-r1.2"}


def test_only_last_attempts_are_counted() -> None:
    assert counts(RUNS, ["s-r3"]) == "2 COMPLETED, 1 FAILED, 1 MISSING, 1 RUNNING"
