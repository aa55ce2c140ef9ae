"""What Slurm does to a job, and the state and sentence that a user reads."""

from __future__ import annotations

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


REFUSED_BY_SLURM = [
    (("--partition", "gpux"), "invalid partition specified", "sinfo -s"),
    (("--nodes", "5"), "Node count specification invalid", "sinfo"),
    (("--time", "2h"), "Requested time limit is invalid", "sinfo"),
    (("--constraint", "h100"), "Invalid feature specification", "--constraint"),
]


def test_slurm_refuses_what_the_profile_does_not_know(user: User) -> None:
    """A profile without partitions knows no limits: Slurm's own words are passed on."""
    text = user.profile.read_text()
    before, _, after = text.partition("partitions:\n")
    rest = after[after.index("rendezvous:") :]
    bare = (before + rest).replace("name: lab\n", "name: bare\n")
    (user.folder / "bare.yaml").write_text(bare)
    user.write("job.yaml", job("j", SLEEP, time="1m"))
    for options, said, hint in REFUSED_BY_SLURM:
        done = user.submit("job.yaml", *options, site="bare")
        assert done.returncode == 1, (options, done.stdout)
        line, _, advice = done.stderr.partition("hpctrain: sbatch: ")[2].partition("\n")
        assert said in line
        assert hint in advice
        assert not (user.folder / "results").exists(), options
        rehearsed = user.submit("job.yaml", *options, "--dry-run", site="bare")
        assert rehearsed.returncode == 0
        assert "refused: " in rehearsed.stderr
    accepted = user.submit("job.yaml", "--dry-run", site="bare")
    assert "to start at" in accepted.stderr
    assert accepted.stdout.startswith("#!/bin/bash\n#SBATCH --job-name=j\n")
