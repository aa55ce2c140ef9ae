"""Results in a folder that each node has for itself, as /dev/shm: the job fails and says so."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.base.data_folders import template_folder
from tests.conftest import Slurm
from tests.end_to_end.queue import wait_until_idle
from tests.end_to_end.user import User
from tests.submissions.waiting import wait_for

pytestmark = [pytest.mark.slurm]
ADVICE = "the results must be on a file system that all nodes share (--results DIR)"
JOB = {
    "name": "here",
    "command": ["echo", "hello"],
    "launcher": "srun",
    "resources": {
        "nodes": 2,
        "tasks_per_node": 1,
        "cpus_per_task": 1,
        "gpus_per_node": 0,
        "time": "1m",
    },
}


@pytest.fixture
def mine(tmp_path: Path) -> Iterator[Path]:
    """Return a name in memory, which on a node of the lab is another folder."""
    folder = Path("/dev/shm", f"hpctrain-{tmp_path.name}")  # noqa: S108 - its point is to be there
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_no_node_has_it(user: User, mine: Path) -> None:
    user.write("job.yaml", JOB)
    done = user.submit("job.yaml", "--results", mine, "--wait")
    assert done.returncode == 1
    assert ADVICE in done.stderr
    row = user.run("here", "--results", mine)
    assert row["state"] == "FAILED"
    assert row["problem"].endswith(ADVICE)
    assert ADVICE in user.hpctrain("status", "here", "--results", mine).stdout


def test_the_first_node_has_it(user: User, slurm: Slurm, mine: Path) -> None:
    """The script runs, so that only its logs can say what is wrong: here and on its node."""
    blocker = slurm("sbatch", "--parsable", "-N4", "--exclusive", "-o/dev/null", "--wrap=sleep 999")
    wait_for(lambda: slurm("squeue", "-h", "-o%T") == "RUNNING\n")
    user.write("job.yaml", JOB)
    assert user.submit("job.yaml", "--results", mine).returncode == 0
    run = user.run("here", "--results", mine)
    folder = run["folder"]
    step = ("srun", "--overlap", f"--jobid={blocker.strip()}", "-N1", "-n1", "-wlab1")
    slurm(*step, "mkdir", "-p", f"{folder}/logs")
    slurm(*step, "cp", str(template_folder() / "runtime.sh"), folder)
    # Nodes that are free before the others would be those of the job.
    slurm("scontrol", "hold", run["job"])
    slurm("scancel", blocker.strip())
    wait_until_idle(slurm)
    slurm("scontrol", "release", run["job"])
    done = user.hpctrain("status", "here", "--watch", "--results", mine)
    assert done.returncode == 0
    assert "FAILED" in done.stdout.splitlines()[-1]
    row = user.run("here", "--results", mine)
    assert row["state"] == "FAILED"
    assert row["problem"].endswith(ADVICE)
    there = slurm("srun", "-N1", "-n1", "-wlab1", "cat", f"{folder}/logs/job.out")
    assert f"hpctrain: {folder} does not exist on lab2; {ADVICE}" in there
