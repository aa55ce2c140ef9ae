"""The nodes that the next start of a job leaves out; the script is run by bash."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpc_train.model.plan import LaunchPlan
from hpc_train.scripts.render import render_script
from tests.scripts.job_starts import PROGRAM, Job

Plans = Callable[..., LaunchPlan]


@pytest.fixture
def started(plan: Plans, tmp_path: Path) -> Callable[..., Job]:
    def make(**lifecycle: Any) -> Job:
        command = ["bash", "-c", PROGRAM]
        made = plan("slurm-generic", command=command, launcher="single", lifecycle=lifecycle)
        return Job(tmp_path, render_script(made).text)

    return make


def updates(job: Job) -> list[str]:
    file = job.folder / "updated"
    return file.read_text().splitlines() if file.exists() else []


def test_a_node_that_is_the_first_to_fail_twice_is_left_out(started: Callable[..., Job]) -> None:
    job = started(requeue_on=[1, 75])
    said, _ = job.start(1, step=5, FAILED="n2.cluster")
    assert "without" not in said
    assert updates(job) == []
    job.start(1, step=6, FAILED="n1")
    said, again = job.start(1, step=7, FAILED="n2.cluster", EXCLUDED="n[7-8]")
    assert again
    assert "queued again after step 7, restart 3 of at most 10, without n2\n" in said
    assert updates(job) == ["jobid=71 excnodelist=n[7-8],n2"]
    assert [row["failed"] for row in job.rows()] == ["n2", "n1", "n2"]
    assert [row["left_out"] for row in job.rows()] == ["", "", "n2"]


def test_ranks_that_saved_or_were_ended_by_slurm_blame_no_node(started: Callable[..., Job]) -> None:
    job = started(requeue_on=[1, 75])
    for step in (1, 2):
        job.start(75, step=step, FAILED="n1")
    job.start(1, step=3, FAILED="n1", STATE="COMPLETING")
    job.start(1, step=4, FAILED="n1", PREEMPTED="2026-11-27T20:27:58")
    assert [row["failed"] for row in job.rows()] == ["", "", "", ""]
    assert updates(job) == []
