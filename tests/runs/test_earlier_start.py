"""A requeued job that waits: its files say what ended its earlier start, without accounting."""

from datetime import datetime

import pytest

from hpc_train.runs.run import JobReport, JobState, JobStatus, Run
from hpc_train.runs.run_table import row, why
from tests.runs.test_run_state_and_reason import SUBMITTED, judged

BEGAN = datetime(2026, 11, 21, 3, 0, 0).timestamp()
ENDED = BEGAN + 60
WAITS = JobReport(state=JobState.PENDING, reason="it waits for resources")
LOST = JobStatus(started=BEGAN, host="n1", nodes="n[1-2]")
TERM = "SIGTERM, as Slurm sends it when it preempts or requeues a job"


def run(status: JobStatus | None, report: JobReport) -> Run:
    return judged(SUBMITTED, status, report)


def ended(code: int) -> JobStatus:
    return JobStatus(started=BEGAN, ended=ENDED, exit_code=code, host="n1", nodes="n[1-2]")


@pytest.mark.parametrize(
    ("code", "words"),
    [(143, f"143 ({TERM})"), (137, "137 (SIGKILL)"), (3, "3"), (128, "128"), (255, "255")],
)
def test_the_end_that_the_script_recorded(code: int, words: str) -> None:
    end = "it ran on n[1-2] until 2026-11-21 03:01:00, when its script ended with exit code"
    assert why(run(ended(code), WAITS)) == f"{end} {words}; it waits for resources"


def test_a_start_without_an_end_was_cut_off() -> None:
    assert why(run(LOST, WAITS)) == (
        "it ran on n[1-2] from 2026-11-21 03:00:00 and recorded no end: its node was lost, or its "
        "script was killed; it waits for resources"
    )
    assert why(run(LOST, JobReport(state=JobState.PENDING))).endswith("script was killed")


def test_json_has_the_earlier_start_until_the_next() -> None:
    found = row(run(ended(143), WAITS))
    assert found["earlier_start"] == {
        "nodes": "n[1-2]",
        "started": BEGAN,
        "ended": ENDED,
        "exit_code": 143,
        "restart_count": 0,
    }
    assert row(run(LOST, WAITS))["earlier_start"]["ended"] is None
    runs = JobReport(state=JobState.RUNNING, start=BEGAN)
    assert row(run(LOST, runs))["earlier_start"] is None
    assert row(run(None, WAITS))["earlier_start"] is None
    # It has started again, but its script has not written anything.
    again = JobReport(state=JobState.RUNNING, start=ENDED + 120)
    assert row(run(ended(143), again))["earlier_start"]["exit_code"] == 143
