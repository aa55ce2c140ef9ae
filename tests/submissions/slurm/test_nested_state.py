"""Runs of one allocation: whose turn it is, was, or never came."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpc_train.model.submission import JobReport, JobState
from hpc_train.submissions.slurm.nested_state import turn
from tests.submissions.slurm.made import runs, says

BEGUN = {"started": 1000.0}
FAILED = {"started": 1000.0, "ended": 1010.0, "exit_code": 3}


def allocation(state: JobState, start: float | None = 990.0, reason: str = "") -> JobReport:
    return JobReport(state=state, job="7", start=start, nodes="n[1-4]", reason=reason)


@pytest.mark.parametrize(
    ("state", "status", "expected"),
    [
        (JobState.PENDING, None, JobState.PENDING),
        (JobState.RUNNING, None, JobState.PENDING),
        (JobState.RUNNING, BEGUN, JobState.RUNNING),
        (JobState.RUNNING, FAILED, None),
        (JobState.SUSPENDED, None, JobState.SUSPENDED),
        (JobState.SUSPENDED, BEGUN, JobState.SUSPENDED),
        (JobState.COMPLETED, FAILED, None),
        (JobState.COMPLETED, None, JobState.LOST),
        (JobState.TIMEOUT, BEGUN, JobState.TIMEOUT),
        (JobState.TIMEOUT, None, JobState.LOST),
        (JobState.CANCELLED, None, JobState.LOST),
        (JobState.NODE_FAIL, BEGUN, JobState.NODE_FAIL),
        (JobState.UNKNOWN, None, JobState.UNKNOWN),
        (JobState.UNKNOWN, BEGUN, JobState.UNKNOWN),
        (JobState.UNKNOWN, FAILED, None),
        (JobState.LOST, BEGUN, JobState.LOST),
        (JobState.LOST, FAILED, None),
    ],
)
def test_a_turn(
    tmp_path: Path, state: JobState, status: dict[str, Any] | None, expected: JobState | None
) -> None:
    (run,) = runs(tmp_path, "p-r1")
    if status is not None:
        says(run, **status)
    found = turn(run, allocation(state))
    assert (found.state if found else None) is expected


def test_a_run_of_an_allocation_that_is_queued_again_waits_with_it(tmp_path: Path) -> None:
    (run,) = runs(tmp_path, "p-r1")
    says(run, **FAILED)
    waits = allocation(
        JobState.PENDING, start=None, reason="jobs of higher priority are scheduled first"
    )
    assert turn(run, waits) == waits


def test_a_turn_that_has_not_come_says_so(tmp_path: Path) -> None:
    (run,) = runs(tmp_path, "p-r1")
    waits = turn(run, allocation(JobState.RUNNING))
    assert waits is not None
    assert waits.reason == "it waits for earlier runs in the allocation, job 7"
    assert (waits.start, waits.job) == (None, "7"), "it is not expected at the allocation's start"
    lost = turn(run, allocation(JobState.TIMEOUT))
    assert lost is not None
    assert lost.reason == "its allocation, job 7, ended (TIMEOUT) before it started"


def test_a_run_that_was_cut_off_shares_its_allocations_end(tmp_path: Path) -> None:
    (run,) = runs(tmp_path, "p-r1")
    says(run, **FAILED)
    run.cut_off.touch()
    found = turn(run, allocation(JobState.CANCELLED))
    assert found is not None
    assert found.state is JobState.CANCELLED
    assert found.reason == "its allocation, job 7, ended while it was running"
    assert turn(run, allocation(JobState.RUNNING)) is None


def test_an_allocation_that_could_not_start_fails_its_runs(tmp_path: Path) -> None:
    """Were they lost, each submission would try them again."""
    (run,) = runs(tmp_path, "p-r1")
    found = turn(run, allocation(JobState.FAILED, reason="it could not be started"))
    assert found is not None
    assert found.state is JobState.FAILED
    assert found.reason.endswith("ended (FAILED) before it started: it could not be started")
