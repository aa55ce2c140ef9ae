"""What Slurm does to a job, and the state and sentence that a user reads."""

from typing import Any

import pytest

from tests.conftest import Slurm
from tests.end_to_end.queue import drained
from tests.end_to_end.studies import job
from tests.end_to_end.user import User

pytestmark = [pytest.mark.slurm]

LAUNCHERS = ("srun", "torchrun", "mpirun")
SLEEP = "exec sleep 3000"
SAVE = """\
import signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: (print("saved", flush=True), sys.exit(0)))
print("ready", flush=True)
time.sleep(200)
"""


def saver(launcher: str) -> dict[str, Any]:
    """Return a job that is told two minutes before its end.

    Slurm takes half a minute more, and looks every half a minute: the ranks have as long to get
    ready.
    """
    keys: dict[str, Any] = {"launcher": launcher, "signal_before_end": "120s"}
    return job(f"save-{launcher}", "exec python save.py", tasks=2, time="3m", **keys)


@pytest.mark.mpi
def test_drained_cancelled_suspended_and_out_of_time(user: User, slurm: Slurm, torch: None) -> None:
    """One scenario, because a time limit cannot be shorter than a minute.

    F29: ranks that ask for it are told before, under srun, an agent and mpirun alike.
    """
    (user.folder / "save.py").write_text(SAVE)
    for launcher in LAUNCHERS:
        done = user.submit(user.write(f"{launcher}.yaml", saver(launcher)))
        assert done.returncode == 0, done.stderr
    assert user.submit(user.write("late.yaml", job("late", SLEEP, time="1m"))).returncode == 0
    # Its minute does not go on meanwhile.
    number = user.started("late")["job"]
    slurm("scontrol", "suspend", number)
    user.wait("late", "SUSPENDED")

    assert user.submit(user.write("gone.yaml", job("gone", SLEEP, time="1m"))).returncode == 0
    slurm("scancel", user.started("gone")["job"])
    user.wait("gone", "CANCELLED")
    assert user.run("gone")["problem"] == "cancelled, not by hpctrain"
    twice = user.hpctrain("cancel", "gone")
    assert twice.returncode == 2
    assert "nothing to cancel; 1 run is CANCELLED" in twice.stderr

    slurm("scontrol", "resume", number)
    user.wait("late", "RUNNING")

    waits = job("waits", SLEEP, nodes=2, time="10m")
    with drained(slurm, "lab[1-4]"):
        assert user.submit(user.write("waits.yaml", waits)).returncode == 0
        # Slurm names the nodes only for its first few seconds; both of its sentences say why.
        user.until("waits", lambda row: "drained" in row["reason"])
        assert user.run("waits")["state"] == "PENDING"
    user.wait("waits", "RUNNING")
    ended = user.hpctrain("cancel", "waits")
    assert ended.returncode == 0, ended.stderr
    assert user.run("waits")["problem"] == "cancelled by the user"

    user.wait("late", "TIMEOUT")
    row = user.run("late")
    assert "time limit" in row["problem"]
    # The ranks were told to end; none of them is to blame.
    assert row["exit_code"] == 143
    for launcher in LAUNCHERS:
        user.wait(f"save-{launcher}", "COMPLETED")
        logs = user.logs(f"save-{launcher}")
        assert [logs[f"rank-{rank}.out"] for rank in (0, 1)] == ["ready\nsaved\n"] * 2
