"""`advise --calibrate` on the lab: the measured step times, and what it says of more ranks.

The ranks are real and reduce their gradients with gloo. A GPU of the lab is simulated: what it
would compute is a pause in proportion to its samples, which other processes do not make longer.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.end_to_end.user import User

pytestmark = [pytest.mark.long, pytest.mark.slurm, pytest.mark.usefixtures("torch")]

BATCH, PARAMETERS, STEPS, PAUSE_S = 8, 5_000, 13, 0.2
PROGRAM = f"""\
import json, time
import torch
from torch import distributed

distributed.init_process_group("gloo")
ranks, gradients = distributed.get_world_size(), torch.ones({PARAMETERS})
for step in range({STEPS}):
    begin = time.perf_counter()
    time.sleep({PAUSE_S})
    distributed.all_reduce(gradients)
    gradients /= ranks
    event = {{"step": step, "step_time": time.perf_counter() - begin,
              "global_batch_size": {BATCH} * ranks, "strategy": "ddp" if ranks > 1 else "single"}}
    if distributed.get_rank() == 0:
        print("@hpct", json.dumps(event), flush=True)
distributed.destroy_process_group()
"""
JOB: dict[str, Any] = {
    "name": "mine",
    "command": ["python", "program.py"],
    "launcher": "srun",
    "backend": "gloo",
    "resources": {"nodes": 1, "gpus_per_node": 1, "cpus_per_task": 1, "time": "5m"},
}
CONDITIONS = {"batch": BATCH, "parameters": PARAMETERS, "steps": 1000}
# What the pauses stand for: a GPU with a link, and a network.
MACHINE = "gpu_model: A100\n    nics_per_node: 1\n    nic_gbps: 10\n    gpus_per_node: 4\n"


@pytest.fixture
def linked(user: User) -> User:
    """Return a user of the lab with a profile that has links."""
    text = user.profile.read_text().replace("gpus_per_node: 4\n", MACHINE)
    (user.folder / "linked.yaml").write_text(text.replace("name: lab\n", "name: linked\n"))
    (user.folder / "program.py").write_text(PROGRAM)
    return user


def test_what_was_measured_bounds_the_advice(linked: User) -> None:
    user = linked
    user.write("job.yaml", JOB)
    words = [f"--condition={key}={value}" for key, value in CONDITIONS.items()]
    advise = ("advise", "job.yaml", "--site", "./linked.yaml", "--gpus", "8", *words)
    blind = rows(user, *advise)
    assert all(row["step_s"]["high"] is None for row in blind)

    told = rows(user, *advise, "--calibrate")
    measured = {row["ranks"]: row["step_s"] for row in told if row["measured"]}
    assert set(measured) == {1, 2, 4}
    assert all(PAUSE_S <= one["low"] == one["high"] < 3 * PAUSE_S for one in measured.values())
    (eight,) = [row for row in told if row["ranks"] == 8 and row["strategy"] == "ddp"]
    assert PAUSE_S <= eight["step_s"]["low"] < eight["step_s"]["high"] < 2 * PAUSE_S


def rows(user: User, *words: str) -> list[dict[str, Any]]:
    done = user.hpctrain(*words, "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout[done.stdout.index("{") :])["rows"]
    return found
