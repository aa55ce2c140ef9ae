"""How long the starts of a job ran, and how long its restarts cost; times in seconds."""

from typing import Any

import pytest

from hpc_train.runs.expected_runs import run_time_s, time_lost_s
from hpc_train.runs.run import JobStart, JobStatus

# Saved after 80 of its 100 s, waits for 30 s, and resumes 10 s after its second start.
FIRST = JobStart(restart=0, started=1000.0, ended=1100.0, exit_code=137, step=8, saved=1080.0)
LAST = JobStart(
    restart=1, started=1130.0, ended=1200.0, exit_code=0, step=8, saved=1080.0, resumed=1140.0
)
STATUS = JobStatus(started=1130.0, ended=1200.0, exit_code=0, restart_count=1)


def changed(start: JobStart, **fields: Any) -> JobStart:
    from msgspec.structs import replace

    return replace(start, **fields)


def test_from_the_last_checkpoint_until_the_next_start_has_resumed() -> None:
    assert time_lost_s([FIRST, LAST], STATUS) == 1140 - 1080
    assert run_time_s([FIRST, LAST], STATUS) == 100 + 70


def test_a_job_that_started_once_lost_nothing() -> None:
    status = JobStatus(started=1000.0, ended=1100.0, exit_code=0)
    assert time_lost_s([changed(FIRST, exit_code=0)], status) == 0
    assert run_time_s([], status) == 100


def test_a_start_that_saved_nothing_is_lost_from_its_resume_on() -> None:
    third = changed(LAST, restart=2, started=1260.0, ended=1300.0, resumed=1270.0)
    status = JobStatus(started=1260.0, ended=1300.0, exit_code=0, restart_count=2)
    # The second start resumed at 1140, and nothing of it was kept.
    assert time_lost_s([FIRST, LAST, third], status) == (1140 - 1080) + (1270 - 1140)


def test_a_first_start_without_a_checkpoint_is_lost_as_a_whole() -> None:
    first = changed(FIRST, step=0, saved=None)
    assert time_lost_s([first, changed(LAST, resumed=None)], STATUS) == 1130 - 1000


def test_a_checkpoint_of_an_earlier_job_keeps_nothing_of_this_one() -> None:
    first = changed(FIRST, saved=500.0, resumed=1010.0)
    assert time_lost_s([first, LAST], STATUS) == 1140 - 1010


def test_a_start_whose_node_was_lost_ran_until_its_last_checkpoint_at_least() -> None:
    lost = changed(FIRST, ended=None, exit_code=None)
    assert run_time_s([lost, LAST], STATUS) == 80 + 70
    assert run_time_s([changed(lost, saved=None), LAST], STATUS) == 70
    assert time_lost_s([lost, LAST], STATUS) == 60


@pytest.mark.parametrize(
    "starts",
    [[], [LAST], [changed(FIRST, saved=None), LAST]],
    ids=["none", "the first has no line", "of an earlier version"],
)
def test_what_was_not_recorded_is_not_known(starts: list[JobStart]) -> None:
    assert time_lost_s(starts, STATUS) is None
