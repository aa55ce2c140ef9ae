"""The interface is the profile's choice, and it shows."""

from __future__ import annotations

import sys

import pytest

from tests.end_to_end.user import User

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("torch")]
# 8 MB of gradients: 0.35 s on eth0, and hardly any work beside them.
OPTIONS = ("--global-batch-size", "2", "--width", "192", "--steps", "8", "--no-accuracy")
JOB = {
    "command": [sys.executable, "-m", "hpc_train.workload.train", *OPTIONS],
    "launcher": "srun",
    "resources": {"nodes": 2, "tasks_per_node": 1, "cpus_per_task": 1, "time": "3m"},
}


def fastest_step(user: User, site: str) -> float:
    """Return the time of the step that the machine disturbed least."""
    user.write(f"on-{site}.yml", {"name": f"on-{site}", **JOB})
    done = user.submit(f"on-{site}.yml", "--wait", site=site)
    assert done.returncode == 0, done.stderr
    times = [float(record["value"]) for record in user.records(f"on-{site}", "step_time")]
    assert len(times) == 2 * 8
    return min(times)


def test_the_slow_network_is_slow(user: User) -> None:
    slow = user.site("slow", "GLOO_SOCKET_IFNAME: ib0\n", "GLOO_SOCKET_IFNAME: eth0\n")
    # 15 times, on two cores.
    assert fastest_step(user, slow) > 5 * fastest_step(user, "lab")
