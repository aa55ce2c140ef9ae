"""The interface is the profile's choice, and it shows."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.end_to_end.studies import job
from tests.end_to_end.user import User

pytestmark = [pytest.mark.slurm, pytest.mark.usefixtures("torch")]
# 8 MB of gradients in a step: 0.33 s at the 200 Mbit/s of eth0, and little work.
OPTIONS = "--global-batch-size 2 --width 192 --steps 8 --no-accuracy"
TRAIN = f"exec {sys.executable} -m hpc_train.trainer.train {OPTIONS}"
# Bytes that the two ranks send in 8 steps, at the least.
GRADIENTS = 2 * 8 * 8_000_000


def fastest_step(user: User, site: str) -> float:
    """Return the time of the step that the machine disturbed least."""
    user.write(f"on-{site}.yml", job(f"on-{site}", TRAIN, nodes=2, time="3m"))
    done = user.submit(f"on-{site}.yml", "--wait", site=site)
    assert done.returncode == 0, done.stderr
    times = [float(record["value"]) for record in user.records(f"on-{site}", "step_time")]
    assert len(times) == 2 * 8
    return min(times)


def sent(interface: str) -> int:
    """Return the bytes that the nodes of the lab have sent over one of their interfaces."""
    total = 0
    for node in ("lab1", "lab2", "lab3", "lab4"):
        show = ["ip", "-n", f"hpctrain-{node}", "-s", "-j", "link", "show", interface]
        done = subprocess.run(show, capture_output=True, check=True)
        total += json.loads(done.stdout)[0]["stats64"]["tx"]["bytes"]
    return total


def test_the_slow_network_is_slow(user: User) -> None:
    slow = user.site("slow", "GLOO_SOCKET_IFNAME: ib0\n", "GLOO_SOCKET_IFNAME: eth0\n")
    before = sent("eth0")
    # Its rate is limited, so a busy machine makes it slower, never faster.
    assert fastest_step(user, slow) > 0.3
    assert sent("eth0") - before > GRADIENTS
