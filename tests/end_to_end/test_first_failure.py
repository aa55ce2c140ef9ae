"""A rank fails while the others hang: the run ends at once, and says which."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.end_to_end.user import User
from tests.pipeline.waiting import wait_for

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.slow,
    pytest.mark.mpi,
    pytest.mark.usefixtures("torch"),
]
# Nobody else sleeps as long.
SLEEP = "613.5"
FAIL = f'[ $RANK != 2 ] || {{ echo "rank $RANK gives up"; exit 7; }}; exec sleep {SLEEP}'
JOB = {
    "name": "hang",
    "command": ["bash", "-c", FAIL],
    "resources": {
        "nodes": 2,
        "tasks_per_node": 2,
        "cpus_per_task": 1,
        "gpus_per_node": 0,
        "time": "5m",
    },
}


def sleepers() -> list[str]:
    done = subprocess.run(["pgrep", "-fx", f"sleep {SLEEP}"], capture_output=True, text=True)
    return done.stdout.split()


@pytest.mark.parametrize("launcher", ["srun", "torchrun", "mpirun"])
def test_who_failed_first(user: User, launcher: str) -> None:
    user.write("job.yaml", JOB)
    done = user.submit("job.yaml", "--launcher", launcher, "--wait")
    assert done.returncode == 1
    row = user.run("hang")
    assert (row["state"], row["problem"]) == ("FAILED", "rank 2 on lab2: exit code 7")
    assert row["ended"] - row["started"] < 240
    assert row["exit_code"] != 0
    shown = user.hpctrain("status", Path(row["folder"]).name).stdout
    assert "rank 2 on lab2: exit code 7" in shown
    assert "rank-2.out: rank 2 gives up" in shown
    assert "rank-2.out: rank 2 gives up" in done.stderr
    wait_for(lambda: not sleepers())
