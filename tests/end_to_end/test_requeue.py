"""A training that saves, ends and is queued again by its own job, on a real Slurm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Slurm
from tests.end_to_end.queue import start_now
from tests.end_to_end.user import User
from tests.pipeline.waiting import wait_for
from tests.workload.launching import events

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("torch")]
STEPS = 300
TRAIN = (
    "python -m hpc_train.workload.train --data synthetic --width 8 --global-batch-size 64 --steps"
)


def job(user: User, name: str, **keys: Any) -> str:
    size = {"nodes": 2, "tasks_per_node": 1, "cpus_per_task": 1, "gpus_per_node": 0, "time": "9m"}
    spec = {
        "name": name,
        "command": [*TRAIN.split(), str(STEPS)],
        "launcher": "torchrun",
        "resources": size,
        **keys,
    }
    return user.write(f"{name}.yaml", spec)


def end(user: User, name: str) -> dict[str, Any]:
    (last,) = events(user.logs(name)["rank-0.out"], "end")
    return {key: last[key] for key in ("steps", "samples", "accuracy", "loss")}


def test_a_training_that_is_queued_again_loses_nothing(user: User, slurm: Slurm) -> None:
    user.submit(job(user, "whole"))
    user.submit(job(user, "twice", lifecycle={}))
    folder = Path(user.folder, user.run("twice")["folder"])
    wait_for(lambda: '"step":5,' in user.logs("twice").get("rank-0.out", ""))
    number = user.run("twice")["job"]
    slurm("scancel", "--signal=USR1", number)
    wait_for(lambda: (folder / "restarts.jsonl").exists())
    wait_for(lambda: user.run("twice")["state"] == "PENDING")
    assert "asked to be queued again" in user.run("twice")["reason"]
    (row,) = map(json.loads, (folder / "restarts.jsonl").read_text().splitlines())
    assert (row["exit_code"], row["requeued"], row["stalled"]) == (75, True, 0)
    assert 5 <= row["step"] < STEPS

    def completed() -> bool:
        start_now(number)
        return bool(user.run("twice")["state"] == "COMPLETED")

    wait_for(completed)
    wait_for(lambda: user.run("whole")["state"] == "COMPLETED")
    assert end(user, "twice") == end(user, "whole")
    for rank in (0, 1):
        log = user.logs("twice")[f"rank-{rank}.out"]
        assert [event["step"] for event in events(log, "step")] == list(range(1, STEPS + 1))
        assert "hpctrain: restart 1\n" in log


def test_a_job_that_is_cancelled_is_not_queued_again(user: User, slurm: Slurm) -> None:
    """Its ranks end with the code that asks for it while Slurm ends the job."""
    size = {"nodes": 1, "tasks_per_node": 1, "cpus_per_task": 1, "gpus_per_node": 0, "time": "5m"}
    script = "trap 'exit 75' TERM; echo ready; while :; do sleep 0.1; done"
    command = ["bash", "-c", script]
    keys = {"resources": size, "launcher": "srun", "command": command, "lifecycle": {}}
    user.submit(job(user, "gone", **keys))
    wait_for(lambda: "ready" in user.logs("gone").get("rank-0.out", ""))
    number = user.run("gone")["job"]
    slurm("scancel", number)
    wait_for(lambda: user.run("gone")["ended"] is not None)
    wait_for(lambda: slurm("squeue", "--noheader", f"--jobs={number}", "--states=all") != "")
    states = slurm("squeue", "--noheader", f"--jobs={number}", "--states=all", "--format=%T")
    assert states.split() in (["CANCELLED"], ["COMPLETING"])
    assert user.run("gone")["state"] in ("CANCELLED", "FAILED")
