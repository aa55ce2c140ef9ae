"""States: what the job says first, then the executor; unknown is not finished."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from hpc_train.runs.run import (
    Failure,
    JobReport,
    JobState,
    JobStatus,
    Manifest,
    Run,
    RunFolder,
    Script,
    Submission,
)
from hpc_train.runs.run_states import run_of

SUBMITTED = Submission(executor="local", native_id="q", submitted="now")
CANCELLED = Submission(
    executor="local", native_id="q", submitted="now", state=JobState.CANCELLED, reason="by you"
)
RUNS = JobStatus(started=1.0)
OK = JobStatus(started=1.0, ended=2.0, exit_code=0)
BAD = JobStatus(started=1.0, ended=2.0, exit_code=3, failure=Failure(rank=1, host="h", exit_code=3))


WAITS = JobReport(state=JobState.PENDING)
GOES_ON = JobReport(state=JobState.RUNNING)
GONE = JobReport(state=JobState.LOST)


@pytest.mark.parametrize(
    ("submission", "status", "report", "state"),
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
        (SUBMITTED, None, JobReport(state=JobState.UNKNOWN), JobState.UNKNOWN),
        (SUBMITTED, BAD, JobReport(state=JobState.COMPLETED), JobState.FAILED),
        (SUBMITTED, BAD, JobReport(state=JobState.NODE_FAIL), JobState.NODE_FAIL),
        # A scheduler that does not answer may still have it, and start it again.
        (SUBMITTED, BAD, JobReport(state=JobState.UNKNOWN), JobState.UNKNOWN),
        (SUBMITTED, OK, JobReport(state=JobState.TIMEOUT), JobState.COMPLETED),
        (SUBMITTED, RUNS, JobReport(state=JobState.COMPLETED), JobState.COMPLETED),
        (SUBMITTED, None, JobReport(state=JobState.SUSPENDED), JobState.SUSPENDED),
        (SUBMITTED, RUNS, None, JobState.UNKNOWN),
        (None, RUNS, None, JobState.UNKNOWN),
        (None, BAD, None, JobState.FAILED),
        (None, OK, None, JobState.COMPLETED),
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
    report: JobReport | None,
    state: JobState,
) -> None:
    assert judged(submission, status, report).state is state


@pytest.mark.parametrize(
    ("report", "state"),
    [
        # Queued again: what lies in the folder is of the attempt before.
        (JobReport(state=JobState.PENDING), JobState.PENDING),
        (JobReport(state=JobState.PENDING, queried=50.0), JobState.PENDING),
        (JobReport(state=JobState.RUNNING, start=100.0), JobState.RUNNING),
        (JobReport(state=JobState.SUSPENDED, start=1.0), JobState.COMPLETED),
        # The clocks of a node and of the scheduler are never quite the same.
        (JobReport(state=JobState.RUNNING, start=5.9), JobState.COMPLETED),
        (JobReport(state=JobState.RUNNING, start=6.1), JobState.RUNNING),
        (JobReport(state=JobState.RUNNING), JobState.COMPLETED),
        # The job ended after the scheduler was asked.
        (JobReport(state=JobState.PENDING, queried=0.5), JobState.COMPLETED),
        # What has ended is not queued again.
        (JobReport(state=JobState.LOST, start=100.0), JobState.COMPLETED),
    ],
)
def test_files_of_an_earlier_attempt_count_for_nothing(report: JobReport, state: JobState) -> None:
    assert judged(SUBMITTED, OK, report).state is state


def test_a_job_that_started_after_the_scheduler_was_asked_runs() -> None:
    waits = JobReport(state=JobState.PENDING, queried=0.5)
    assert judged(SUBMITTED, RUNS, waits).state is JobState.RUNNING
    assert judged(SUBMITTED, BAD, waits).state is JobState.RUNNING, "the scheduler has it still"
    before = JobReport(state=JobState.PENDING, queried=1.0)
    assert judged(SUBMITTED, RUNS, before).state is JobState.PENDING


def judged(
    submission: Submission | None,
    status: JobStatus | None,
    report: JobReport | None,
    manifest: Manifest | None = None,
) -> Run:
    folder = RunFolder(path=Path("r"))
    files = Run(folder=folder, manifest=manifest, submission=submission, status=status)
    return run_of(files, report)


LIMIT_S = 3600


@pytest.mark.parametrize(
    ("seconds", "code", "report", "state"),
    [
        (LIMIT_S, 143, None, JobState.TIMEOUT),
        (LIMIT_S - 0.9, 143, GONE, JobState.TIMEOUT),
        (LIMIT_S - 1.1, 143, GONE, JobState.FAILED),
        (LIMIT_S, 0, None, JobState.COMPLETED),
        (LIMIT_S, 143, JobReport(state=JobState.NODE_FAIL), JobState.NODE_FAIL),
        (LIMIT_S, 143, JobReport(state=JobState.COMPLETED), JobState.TIMEOUT),
        (LIMIT_S, 143, JobReport(state=JobState.FAILED), JobState.TIMEOUT),
        # The allocation goes on with another run.
        (LIMIT_S, 143, GOES_ON, JobState.RUNNING),
    ],
)
def test_a_run_that_used_up_its_own_time(
    entry: Callable[[str], tuple[Manifest, Script]],
    seconds: float,
    code: int,
    report: JobReport | None,
    state: JobState,
) -> None:
    manifest, _ = entry("r1")
    assert manifest.plan.time_s == LIMIT_S
    plan = msgspec.structs.replace(manifest.plan, nested=True)
    status = JobStatus(started=10.0, ended=10.0 + seconds, exit_code=code)
    turn = msgspec.structs.replace(manifest, plan=plan)
    assert judged(SUBMITTED, status, report, turn).state is state
    if state is JobState.TIMEOUT:
        # With a job of its own, it is the scheduler that knows.
        assert judged(SUBMITTED, status, report, manifest).state is JobState.FAILED


def test_without_a_limit_nothing_is_a_timeout(
    entry: Callable[[str], tuple[Manifest, Script]],
) -> None:
    manifest, _ = entry("r1")
    endless = msgspec.structs.replace(
        manifest, plan=msgspec.structs.replace(manifest.plan, time_s=None)
    )
    status = JobStatus(started=10.0, ended=1e6, exit_code=143)
    assert judged(SUBMITTED, status, None, endless).state is JobState.FAILED
    assert judged(SUBMITTED, status, None, None).state is JobState.FAILED
