"""States: what the job says first, then the executor; unknown is not finished."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.model.run import Failure, JobStatus, RunFolder
from hpc_train.model.submission import JobState, Standing, Submission
from hpc_train.runs.state import run_of
from hpc_train.runs.store import RunFiles

SUBMITTED = Submission(executor="local", native_id="q", submitted="now")
CANCELLED = Submission(
    executor="local", native_id="q", submitted="now", state=JobState.CANCELLED, reason="by you"
)
RUNS = JobStatus(started=1.0)
OK = JobStatus(started=1.0, ended=2.0, exit_code=0)
BAD = JobStatus(started=1.0, ended=2.0, exit_code=3, failure=Failure(rank=1, host="h", exit_code=3))


WAITS = Standing(state=JobState.PENDING)
GOES_ON = Standing(state=JobState.RUNNING)
GONE = Standing(state=JobState.LOST)


@pytest.mark.parametrize(
    ("submission", "status", "standing", "state"),
    [
        (SUBMITTED, None, WAITS, JobState.PENDING),
        (SUBMITTED, None, GOES_ON, JobState.RUNNING),
        (SUBMITTED, RUNS, GOES_ON, JobState.RUNNING),
        (SUBMITTED, OK, GOES_ON, JobState.COMPLETED),
        (SUBMITTED, OK, GONE, JobState.COMPLETED),
        (SUBMITTED, OK, None, JobState.COMPLETED),
        (SUBMITTED, BAD, None, JobState.FAILED),
        (SUBMITTED, BAD, GONE, JobState.FAILED),
        (SUBMITTED, BAD, GOES_ON, JobState.RUNNING),
        (SUBMITTED, RUNS, GONE, JobState.LOST),
        (SUBMITTED, None, GONE, JobState.LOST),
        (SUBMITTED, None, Standing(state=JobState.UNKNOWN), JobState.UNKNOWN),
        (SUBMITTED, BAD, Standing(state=JobState.COMPLETED), JobState.FAILED),
        (SUBMITTED, BAD, Standing(state=JobState.NODE_FAIL), JobState.NODE_FAIL),
        (SUBMITTED, None, None, JobState.UNKNOWN),
        (None, None, None, JobState.UNKNOWN),
        (CANCELLED, None, None, JobState.CANCELLED),
        (CANCELLED, BAD, None, JobState.CANCELLED),
        (CANCELLED, OK, None, JobState.COMPLETED),
    ],
)
def test_the_state(
    submission: Submission | None,
    status: JobStatus | None,
    standing: Standing | None,
    state: JobState,
) -> None:
    files = RunFiles(
        folder=RunFolder(path=Path("r")), manifest=None, submission=submission, status=status
    )
    assert run_of(files, standing).state is state


@pytest.mark.parametrize(
    ("standing", "state"),
    [
        # Queued again: what lies in the folder is of the attempt before.
        (Standing(state=JobState.PENDING), JobState.PENDING),
        (Standing(state=JobState.PENDING, asked=50.0), JobState.PENDING),
        (Standing(state=JobState.RUNNING, start=100.0), JobState.RUNNING),
        (Standing(state=JobState.SUSPENDED, start=1.0), JobState.COMPLETED),
        # The job ended after the scheduler was asked.
        (Standing(state=JobState.PENDING, asked=0.5), JobState.COMPLETED),
    ],
)
def test_files_of_an_earlier_attempt_count_for_nothing(standing: Standing, state: JobState) -> None:
    files = RunFiles(
        folder=RunFolder(path=Path("r")), manifest=None, submission=SUBMITTED, status=OK
    )
    assert run_of(files, standing).state is state


def test_a_failure_names_rank_host_and_code() -> None:
    files = RunFiles(
        folder=RunFolder(path=Path("r")), manifest=None, submission=SUBMITTED, status=BAD
    )
    assert run_of(files, None).problem == "rank 1 on h: exit code 3"


def test_unknown_and_waiting_are_not_finished() -> None:
    unfinished = {state for state in JobState if not state.finished}
    assert unfinished == {JobState.PENDING, JobState.RUNNING, JobState.SUSPENDED, JobState.UNKNOWN}
