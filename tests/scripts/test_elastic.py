"""Torchrun that starts failed ranks again, for real: one node by itself, two that meet by c10d."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpc_train.plans.plan import LaunchPlan

Plans = Callable[..., LaunchPlan]
Execute = Callable[..., subprocess.CompletedProcess[str]]
pytestmark = [pytest.mark.torch, pytest.mark.process]
# The second rank fails at its first attempts; the other waits for it, as in a collective.
FAIL = """\
import os, pathlib, sys, time
rank, restarts = os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]
print(rank, os.environ["WORLD_SIZE"], restarts, os.environ["MASTER_ADDR"])
well = pathlib.Path("well")
if rank == "1" and restarts < sys.argv[1]:
    sys.exit(9)
if rank == "1":
    well.touch()
while not well.exists():
    time.sleep(0.1)
"""
SITE = """\
schema: 1
name: big
description: d
scheduler: slurm
launchers: {default: torchrun, allowed: [torchrun]}
rendezvous: {host: loopback}
"""


def job(plan: Plans, folder: Path, times: int, **keys: Any) -> LaunchPlan:
    pytest.importorskip("torch")
    (folder / "big.yaml").write_text(SITE)
    (folder / "train.py").write_text(FAIL)
    command = [sys.executable, "train.py", str(times)]
    return plan(keys.pop("site", "local"), command=command, launcher="torchrun", **keys)


def status(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "status.json").read_text())
    return found


def test_one_node_goes_on_and_the_failure_is_forgotten(
    plan: Plans, execute: Execute, tmp_path: Path
) -> None:
    size = {"tasks_per_node": 2, "cpus_per_task": 1}
    again = job(plan, tmp_path, 1, resources=size, elastic={"max_restarts": 2})
    done = execute(again, tmp_path)
    assert done.returncode == 0, done.stderr
    assert status(tmp_path)["failure"] is None
    assert "\nhpctrain: restart 1\n1 2 1 " in (tmp_path / "logs" / "rank-1.out").read_text()


def test_two_nodes_meet_and_meet_again(plan: Plans, execute: Execute, tmp_path: Path) -> None:
    """Which node has rank 0 is torchrun's choice; the ranks are told its address."""
    size = {"nodes": 2, "tasks_per_node": 1, "cpus_per_task": 1}
    again = job(
        plan,
        tmp_path,
        1,
        site=str(tmp_path / "big.yaml"),
        resources=size,
        elastic={"max_restarts": 2},
    )
    done = execute(again, tmp_path, SLURM_JOB_ID="77")
    assert done.returncode == 0, done.stderr
    assert status(tmp_path)["failure"] is None
    both = [(tmp_path / "logs" / f"rank-{rank}.out").read_text() for rank in (0, 1)]
    assert "0 2 " in both[0] and "1 2 1 127.0.0.1" in both[1]
