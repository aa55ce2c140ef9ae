"""The end of a start, run by bash: whether the job is queued again, and the line that it leaves."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.scripts.job_starts import Job


def test_a_start_that_saved_is_followed_by_another(started: Callable[..., Job]) -> None:
    job = started(max_restarts=5)
    said, again = job.start(75, step=120)
    assert again
    assert job.asked == "71\n"
    assert "hpctrain: queued again after step 120, restart 1 of at most 5\n" in said
    assert job.start(0, step=200) == ("hpctrain: restart 1\n", False)
    rows = [{key: row[key] for key in ("restart", "exit_code", "step")} for row in job.rows()]
    assert rows == [
        {"restart": 0, "exit_code": 75, "step": 120},
        {"restart": 1, "exit_code": 0, "step": 200},
    ]
    assert [row["requeued"] for row in job.rows()] == [True, False]
    assert all(row["started"] <= row["ended"] for row in job.rows())


def test_other_codes_end_the_job(started: Callable[..., Job]) -> None:
    job = started(requeue_on=[75, 85])
    assert not job.start(1, step=1)[1]
    assert job.start(85, step=2)[1]
    # Asked to stop before it had a handler of USR1.
    assert job.start(138, step=3, FAILED="n1")[1]
    assert job.rows()[-1]["failed"] == ""


def test_the_number_of_restarts_is_limited(started: Callable[..., Job]) -> None:
    job = started(max_restarts=1)
    assert job.start(75, step=1)[1]
    said, again = job.start(75, step=2)
    assert not again
    assert "not queued again after step 2: it was restarted 1 times" in said


def test_the_running_time_of_all_starts_is_limited(started: Callable[..., Job]) -> None:
    job = started(max_run_time="2h")
    assert job.start(75, step=1)[1]
    row = json.dumps({**job.rows()[0], "started": 0.5, "ended": 7199.5})
    lost = json.dumps({**job.rows()[0], "started": 0.5, "ended": None, "exit_code": None})
    (job.folder / "restarts.jsonl").write_text(f"{row}\n{lost}\n")
    job.starts = 2
    assert job.start(75, step=2)[1]
    job.starts = 2
    (job.folder / "restarts.jsonl").write_text(f"{row.replace('7199.5', '7201.5')}\n{lost}\n")
    said, again = job.start(75, step=3)
    assert not again
    assert "not queued again after step 3: its starts ran for 720" in said
    assert " s together (lifecycle.max_run_time)\n" in said


def test_a_job_that_is_being_cancelled_is_not_queued_again(started: Callable[..., Job]) -> None:
    job = started()
    said, again = job.start(75, step=1, STATE="CANCELLED")
    assert not again
    assert "hpctrain: not queued again: Slurm has ended the job\n" in said
    # A program that Slurm interrupts may end with any code.
    assert not job.start(1, STATE="COMPLETING")[1]
    assert [row["by_slurm"] for row in job.rows()] == [True, True]


@pytest.mark.parametrize(("silent", "by_slurm"), [(5, True), (6, False)])
def test_a_controller_that_does_not_answer_is_asked_again(
    started: Callable[..., Job], silent: int, by_slurm: bool
) -> None:
    job = started()
    job.start(75, step=1, SILENT=str(silent), STATE="COMPLETING")
    assert job.rows()[0]["by_slurm"] == by_slurm
    assert (job.folder / "asked").read_text() == "\n" * silent


def test_a_task_of_an_array_is_queued_again_alone(started: Callable[..., Job]) -> None:
    job = started()
    job.start(75, step=1, SLURM_ARRAY_JOB_ID="70", SLURM_ARRAY_TASK_ID="3")
    assert job.asked == "70_3\n"


@pytest.mark.parametrize(("unreached", "again"), [(5, True), (6, False)])
def test_a_controller_that_is_gone_is_asked_for_the_requeue_again(
    started: Callable[..., Job], unreached: int, again: bool
) -> None:
    job = started()
    said, queued = job.start(75, step=1, UNREACHED=str(unreached))
    assert queued == again
    assert ("Slurm did not queue job 71 again" in said) != again
    assert (job.folder / "unreached").read_text() == "\n" * unreached


def test_a_start_that_wrote_no_end_has_a_line_by_the_next(started: Callable[..., Job]) -> None:
    job = started()
    job.start(75, step=10)
    lines = (job.folder / "restarts.jsonl").read_text()
    job.start(75, step=20, SAY='@hpct {"event": "step", "step": 23}')
    (job.folder / "restarts.jsonl").write_text(lines)
    status = json.loads((job.folder / "status.json").read_text())
    job.start(0)
    lost = {"restart": 1, "started": status["started"], "ended": None, "exit_code": None}
    progress = {"step": 20, "reached": 23, "stalled": 0, "nodes": "localhost"}
    progress |= {
        "loaded": None,
        "loaded_saved": None,
        "requeued": False,
        "by_slurm": False,
        "preempted": False,
    }
    assert [row["restart"] for row in job.rows()] == [0, 1, 2]
    # The script looks at the file of the checkpoint, which the test itself wrote.
    progress |= {"saved": job.rows()[1]["saved"], "resumed": None, "failed": ""}
    assert status["started"] <= progress["saved"] <= status["ended"]
    assert job.rows()[1] == {**lost, **progress}


def test_the_time_of_the_last_checkpoint_is_known(started: Callable[..., Job]) -> None:
    job = started()
    job.start(75)
    job.start(75, step=10)
    job.start(0)
    (none, saved, later) = job.rows()
    assert (none["saved"], none["resumed"]) == (None, None)
    assert saved["started"] <= saved["saved"] <= saved["ended"]
    assert later["saved"] == saved["saved"]
