"""A job that is cancelled while its ranks ask to be queued again, on a real Slurm."""

from __future__ import annotations

import pytest

from tests.conftest import Slurm
from tests.end_to_end.user import User
from tests.pipeline.waiting import wait_for

pytestmark = [pytest.mark.slurm, pytest.mark.slow]


def test_a_job_that_is_cancelled_is_not_queued_again(user: User, slurm: Slurm) -> None:
    """Its ranks end with the code that asks for it while Slurm ends the job."""
    size = {"nodes": 1, "tasks_per_node": 1, "cpus_per_task": 1, "gpus_per_node": 0, "time": "5m"}
    script = "trap 'exit 75' TERM; echo ready; while :; do sleep 0.1; done"
    job = {"name": "gone", "command": ["bash", "-c", script], "launcher": "srun"}
    user.submit(user.write("gone.yaml", {**job, "resources": size, "lifecycle": {}}))
    wait_for(lambda: "ready" in user.logs("gone").get("rank-0.out", ""))
    number = user.run("gone")["job"]
    slurm("scancel", number)
    wait_for(lambda: user.run("gone")["ended"] is not None)
    wait_for(lambda: slurm("squeue", "--noheader", f"--jobs={number}", "--states=all") != "")
    states = slurm("squeue", "--noheader", f"--jobs={number}", "--states=all", "--format=%T")
    assert states.split() in (["CANCELLED"], ["COMPLETING"])
    assert user.run("gone")["state"] in ("CANCELLED", "FAILED")
