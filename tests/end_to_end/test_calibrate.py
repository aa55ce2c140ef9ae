"""`advise --calibrate` on the lab, and a study of larger sizes that checks what it said.

The ranks are real and reduce their gradients with gloo. A GPU of the lab is simulated: what it
would compute is a pause in proportion to its samples, which other processes do not make longer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hpc_train.lab.state_file import Lab, read
from tests.conftest import Hpctrain
from tests.end_to_end.user import User, user_of

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("torch")]

BATCH, PARAMETERS, STEPS, PAUSE_S = 8, 5_000, 13, 1.0
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
MACHINE = "gpu_model: A100\n    nics_per_node: 1\n    nic_gbps: 10\n    gpus_per_node: 2\n"


@pytest.fixture
def small_lab(no_lab: None, hpctrain: Hpctrain, tmp_path: Path) -> Iterator[User]:
    """Return a user of four nodes with two GPUs each, whose profile has links."""
    done = hpctrain("up", "--gpus", "2")
    assert done.returncode == 0, done.stderr
    found = read()
    assert isinstance(found, Lab)
    user = user_of(found, tmp_path)
    text = user.profile.read_text().replace("gpus_per_node: 2\n", MACHINE)
    (tmp_path / "small.yaml").write_text(text.replace("name: lab\n", "name: small\n"))
    (tmp_path / "program.py").write_text(PROGRAM)
    yield user
    assert hpctrain("down").returncode == 0


def test_a_study_confirms_the_advice(small_lab: User) -> None:
    user = small_lab
    user.write("job.yaml", JOB)
    words = [f"--condition={key}={value}" for key, value in CONDITIONS.items()]
    advise = ("advise", "job.yaml", "--site", "./small.yaml", "--gpus", "8", *words)
    blind = rows(user, *advise)
    assert all(row["step_s"]["high"] is None for row in blind)

    told = rows(user, *advise, "--calibrate")
    measured = {row["ranks"]: row["step_s"] for row in told if row["measured"]}
    assert set(measured) == {1, 2, 4}
    assert all(PAUSE_S <= one["low"] == one["high"] < 3 * PAUSE_S for one in measured.values())
    (eight,) = [row for row in told if row["ranks"] == 8 and row["strategy"] == "ddp"]
    assert PAUSE_S <= eight["step_s"]["low"] < eight["step_s"]["high"] < 2 * PAUSE_S

    resources = {**JOB["resources"], "gpus_per_node": 2}
    study = {
        "name": "mine", "job": {**JOB, "resources": resources}, "axes": {"nodes": [4]},
        "scaling": "weak", "conditions": CONDITIONS,
    }  # fmt: skip
    done = user.submit(user.write("study.yaml", study), "--wait", site="./small.yaml")
    assert done.returncode == 0, done.stderr
    report = user.hpctrain("report", "mine", "-f", "json")
    assert report.returncode == 0, report.stderr
    checked = json.loads(report.stdout)["forecasts"]
    (row,) = checked
    said = (measured, row["step_s"], row["forecast_step_s"])
    assert (row["strategy"], row["ranks"], row["inside"]) == ("ddp", 8, True), said


def rows(user: User, *words: str) -> list[dict[str, Any]]:
    done = user.hpctrain(*words, "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout[done.stdout.index("{") :])["rows"]
    return found
