"""States: what the job says first, then the executor; unknown is not finished."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.model.run import Failure, JobStatus, RunFolder
from hpc_train.model.submission import JobState, Submission
from hpc_train.runs.state import run_of
from hpc_train.runs.store import RunFiles

SUBMITTED = Submission(executor="local", native_id="q", submitted="now")
CANCELLED = Submission(
    executor="local", native_id="q", submitted="now", state=JobState.CANCELLED, reason="by you"
)
RUNS = JobStatus(started=1.0)
OK = JobStatus(started=1.0, ended=2.0, exit_code=0)
BAD = JobStatus(started=1.0, ended=2.0, exit_code=3, failure=Failure(rank=1, host="h", exit_code=3))


@pytest.mark.parametrize(
    ("submission", "status", "alive", "state"),
    [
        (SUBMITTED, None, True, JobState.PENDING),
        (SUBMITTED, RUNS, True, JobState.RUNNING),
        (SUBMITTED, OK, True, JobState.COMPLETED),
        (SUBMITTED, OK, False, JobState.COMPLETED),
        (SUBMITTED, BAD, False, JobState.FAILED),
        (SUBMITTED, RUNS, False, JobState.LOST),
        (SUBMITTED, None, False, JobState.LOST),
        (SUBMITTED, None, None, JobState.UNKNOWN),
        (None, None, None, JobState.UNKNOWN),
        (CANCELLED, None, False, JobState.CANCELLED),
        (CANCELLED, BAD, False, JobState.CANCELLED),
        (CANCELLED, OK, False, JobState.COMPLETED),
    ],
)
def test_the_state(
    submission: Submission | None, status: JobStatus | None, alive: bool | None, state: JobState
) -> None:
    files = RunFiles(
        folder=RunFolder(path=Path("r")), manifest=None, submission=submission, status=status
    )
    assert run_of(files, alive).state is state


def test_a_failure_names_rank_host_and_code() -> None:
    files = RunFiles(
        folder=RunFolder(path=Path("r")), manifest=None, submission=SUBMITTED, status=BAD
    )
    assert run_of(files, None).problem == "rank 1 on h: exit code 3"


def test_unknown_and_waiting_are_not_finished() -> None:
    unfinished = {state for state in JobState if not state.finished}
    assert unfinished == {JobState.PENDING, JobState.RUNNING, JobState.UNKNOWN}
