"""A live lab is ended by `lab down` alone, and a dead one is no obstacle."""

import os
import signal
import subprocess
from collections.abc import Iterator

import msgspec
import pytest

from hpc_train.lab import state_file
from hpc_train.lab.daemons import Daemon, boot_id, is_alive, start_time
from hpc_train.lab.state_file import Lab
from tests.lab.conftest import Hpctrain
from tests.submissions.waiting import wait_for

pytestmark = pytest.mark.slurm
SMALL = ("--nodes", "1", "--gpus", "0")


def test_a_broken_lab_with_other_settings_is_left_alone(lab: Lab, hpctrain: Hpctrain) -> None:
    (victim,) = (daemon for daemon in lab.daemons if daemon.name == "slurmd of lab2")
    os.kill(victim.pid, signal.SIGKILL)
    wait_for(lambda: not is_alive(victim))
    done = hpctrain("up", *SMALL)
    assert done.returncode == 2
    assert "--nodes 4 instead of 1" in done.stderr
    assert "hpctrain lab down" in done.stderr
    assert state_file.read() == lab
    others = [daemon for daemon in lab.daemons if daemon != victim]
    assert all(map(is_alive, others))


@pytest.fixture
def stranger() -> Iterator[Daemon]:
    """Return a process that is no daemon of a lab."""
    with subprocess.Popen(["sleep", "600"]) as process:
        started = start_time(process.pid) or 0
        yield Daemon(name="slurmctld", pid=process.pid, started=started, boot=boot_id())
        process.kill()


@pytest.mark.parametrize("stale", ["killed", "rebooted"])
def test_a_dead_lab_is_no_obstacle(
    lab: Lab, hpctrain: Hpctrain, stranger: Daemon, stale: str
) -> None:
    for daemon in lab.daemons:
        os.kill(daemon.pid, signal.SIGKILL)
    wait_for(lambda: not any(map(is_alive, lab.daemons)))
    # The id is used again: by a younger process, or in another boot with the same time of start.
    change = {"started": stranger.started - 1} if stale == "killed" else {"boot": "an earlier one"}
    found = msgspec.structs.replace(stranger, **change)
    state_file.write(msgspec.structs.replace(lab, daemons=(found, *lab.daemons[1:])))
    again = hpctrain("up")
    assert "removing the remains of a lab" in again.stderr
    assert is_alive(stranger)
