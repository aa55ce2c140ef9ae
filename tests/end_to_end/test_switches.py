"""Switches of a real slurmctld: what doctor says of them, and what a report says of its runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.lab.state_file import Lab, read
from tests.conftest import Hpctrain, Slurm
from tests.end_to_end.queue import wait_until_idle
from tests.end_to_end.user import User, user_of

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

EVENT = '@hpct {"samples_per_second": 10, "global_batch_size": 8, "steps": 500}'
WAYS = re.compile(r"\S+-r1 on 2 leaf switches \(3 hops\), \S+-r2 on 1 leaf switch \(1 hop\)")
STUDY = {
    "name": "spread",
    "job": {
        "command": ["echo", EVENT],
        "launcher": "srun",
        "resources": {"tasks_per_node": 1, "cpus_per_task": 1, "gpus_per_node": 0, "time": "5m"},
    },
    "axes": {"nodes": [2]},
    "scaling": "weak",
}


@pytest.fixture
def switched_lab(
    no_lab: None, hpctrain: Hpctrain, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Lab]:
    """Return a lab of four nodes on two leaf switches, and point Slurm's commands at it."""
    done = hpctrain("up", "--nodes-per-switch", "2")
    assert done.returncode == 0, done.stderr
    found = read()
    assert found is not None
    monkeypatch.setenv("SLURM_CONF", f"{found.settings.folder}/slurm.conf")
    yield found
    assert hpctrain("down").returncode == 0


def test_runs_of_a_point_on_one_switch_and_on_two(
    switched_lab: Lab, slurm: Slurm, hpctrain: Hpctrain, tmp_path: Path
) -> None:
    user = user_of(switched_lab, tmp_path)
    conf = f"{switched_lab.settings.folder}/slurm.conf"
    doctor = user.hpctrain("doctor", SLURM_CONF=conf).stdout
    assert "topology     2 leaf switches of 2 nodes" in doctor
    assert "a job of at most 2 nodes: --switches=1@TIME" in doctor
    drafted = user.hpctrain("site", "init", "drafted", SLURM_CONF=conf)
    assert drafted.returncode == 0, drafted.stderr
    text = (user.folder / "site_profiles" / "drafted.yaml").read_text()
    assert "nodes_per_switch: 2  # scontrol show topology: 2 leaf switches of 2 nodes" in text
    # Only one node of each switch is free: the first run is on both.
    slurm("scontrol", "update", "nodename=lab1,lab4", "state=drain", "reason=test")
    submit(user, repetitions=1)
    slurm("scontrol", "update", "nodename=lab1,lab4", "state=resume")
    wait_until_idle(slurm)
    assert "Caveats: runs of one point" not in user.hpctrain("report", "spread").stdout
    submit(user, repetitions=2)
    said = user.hpctrain("report", "spread").stdout
    assert places(user) == {"r1": (2, 3), "r2": (1, 1)}
    assert WAYS.search(" ".join(said.split())), said
    # The controller is gone; the answers are in the folders of the runs.
    assert hpctrain("down").returncode == 0
    again = user.hpctrain("report", "spread").stdout
    assert WAYS.search(" ".join(again.split())), again


def submit(user: User, *, repetitions: int) -> None:
    done = user.submit(user.write("study.yaml", {**STUDY, "repetitions": repetitions}), "--wait")
    assert done.returncode == 0, done.stderr


def places(user: User) -> dict[str, tuple[int, int]]:
    """Return leaves and hops of each repetition."""
    files = (user.folder / "results" / "spread").glob("*/switches.json")
    found = {file.parent.name: json.loads(file.read_bytes()) for file in files}
    return {name.rpartition("-")[2]: (one["leaves"], one["hops"]) for name, one in found.items()}
