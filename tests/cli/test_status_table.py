"""Runs as rows: what waits says on what, and the last attempt counts."""

import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hpc_train.runs.run import JobReport, JobState, JobStatus, Run, RunFolder, Submission
from hpc_train.runs.run_table import HEADS, counts, earlier, row, rows, why

SLURM = Submission(executor="slurm", native_id="7_1", submitted="now")


def a_run(run_id: str, state: JobState, **more: Any) -> Run:
    given = {"manifest": None, "submission": SLURM, "status": None, **more}
    return Run(folder=RunFolder(path=Path(f"results/s/{run_id}")), state=state, **given)


def cell(run: Run, head: str) -> str:
    (cells,) = rows([run])
    return cells[HEADS.index(head)]


def test_of_a_run_that_was_tried_again_the_last_attempt_counts() -> None:
    runs = [
        a_run("p-r1", JobState.FAILED, problem="rank 0 on n1: exit code 3"),
        a_run("p-r1.2", JobState.NODE_FAIL),
        a_run("p-r1.10", JobState.COMPLETED),
        a_run("p-r2", JobState.COMPLETED),
        a_run("p-r11", JobState.FAILED),
    ]
    assert counts(runs) == "2 COMPLETED, 1 FAILED"
    assert earlier(runs) == {"p-r1", "p-r1.2"}
    problems = {cells[0]: cells[-1] for cells in rows(runs)}
    assert problems["p-r1"] == "retried: rank 0 on n1: exit code 3"
    assert problems["p-r1.10"] == problems["p-r2"] == ""


def test_runs_without_a_folder_are_rows() -> None:
    runs = [a_run("p-r1", JobState.COMPLETED)]
    assert counts(runs, ["p-r2", "p-r3"]) == "1 COMPLETED, 2 MISSING"
    assert rows(runs, ["p-r2"])[1] == (
        "p-r2",
        "MISSING",
        "",
        "",
        "",
        "never submitted, or removed",
    )
    assert counts([]) == "no runs"


def test_what_waits_says_on_what_and_until_when() -> None:
    start = datetime(2026, 11, 21, 6, 52).timestamp()
    waits = JobReport(
        state=JobState.PENDING, reason="jobs of higher priority are scheduled first", start=start
    )
    run = a_run("p-r1", JobState.PENDING, job_report=waits)
    assert (
        why(run)
        == "jobs of higher priority are scheduled first; expected to start at 2026-11-21 06:52"
    )
    soon = a_run(
        "p-r1", JobState.PENDING, job_report=JobReport(state=JobState.PENDING, start=start)
    )
    assert why(soon) == "expected to start at 2026-11-21 06:52"
    silent = a_run("p-r1", JobState.PENDING, job_report=JobReport(state=JobState.PENDING))
    assert why(silent) == ""


def test_the_time() -> None:
    ended = JobStatus(started=10.0, ended=12.34, exit_code=0)
    begin = time.time()
    begun = JobStatus(started=begin - 100)
    assert cell(a_run("r", JobState.COMPLETED, status=ended), "time") == "2.3 s"
    seconds, word, _ = cell(a_run("r", JobState.RUNNING, status=begun), "time").split()
    assert 100 <= float(seconds) <= 101 + time.time() - begin
    assert word == "s"
    for state in (JobState.LOST, JobState.UNKNOWN, JobState.PENDING):
        assert cell(a_run("r", state, status=begun), "time") == "--"
    assert cell(a_run("r", JobState.PENDING), "time") == "--"


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.RUNNING, JobState.SUSPENDED])
def test_times_from_before_a_requeue_are_not_shown(state: JobState) -> None:
    ended = JobStatus(started=10.0, ended=12.34, exit_code=1)
    assert cell(a_run("r", state, status=ended), "time") == "--"


def test_a_row_of_json() -> None:
    waits = JobReport(state=JobState.PENDING, reason="it is held by its user", start=5.0)
    status = JobStatus(started=1.0, ended=2.0, exit_code=3, restart_count=1, host="n1")
    found = row(a_run("p-r1", JobState.PENDING, job_report=waits, status=status))
    assert found["folder"] == "results/s/p-r1"
    assert (found["state"], found["job"]) == ("PENDING", "7_1")
    assert (found["reason"], found["expected_start"]) == ("it is held by its user", 5.0)
    assert (found["started"], found["exit_code"], found["restart_count"]) == (1.0, 3, 1)
    assert found["axes"] is found["attempt"] is None
    # Of a job that runs, the start is not expected any more.
    runs = JobReport(state=JobState.RUNNING, start=5.0)
    assert row(a_run("p-r1", JobState.RUNNING, job_report=runs))["expected_start"] is None


def test_the_job_and_its_nodes() -> None:
    """The job has no id until sbatch has answered; the nodes are Slurm's or else the job's own."""
    asked = Submission(executor="slurm", native_id="_1", submitted="now")
    for submission, job in ((SLURM, "7_1"), (asked, "")):
        assert cell(a_run("r", JobState.PENDING, submission=submission), "job") == job
    several = JobStatus(started=1.0, host="n1", nodes="n[1-2]")
    runs = JobReport(state=JobState.RUNNING, nodes="n[1-4]")
    alone = JobStatus(started=1.0, host="n1")
    known = a_run("r", JobState.RUNNING, status=alone, job_report=runs)
    assert cell(known, "nodes") == "n[1-4]"
    assert cell(a_run("r", JobState.LOST, status=several), "nodes") == "n[1-2]"
    assert cell(a_run("r", JobState.PENDING, status=several), "nodes") == ""
