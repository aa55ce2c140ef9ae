"""A rank fails while the others hang: the run ends at once, and says which."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.end_to_end.studies import job
from tests.end_to_end.user import User
from tests.submissions.waiting import wait_for

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.mpi,
    pytest.mark.usefixtures("torch"),
]
# Nobody else sleeps as long.
SLEEP = "613.5"
FAIL = f'[ $RANK != 2 ] || {{ echo "rank $RANK gives up"; exit 7; }}; exec sleep {SLEEP}'


def sleepers() -> list[str]:
    done = subprocess.run(["pgrep", "-fx", f"sleep {SLEEP}"], capture_output=True, text=True)
    return done.stdout.split()


def test_who_failed_first(user: User) -> None:
    launchers = ("srun", "torchrun", "mpirun")
    for name in launchers:
        done = user.submit(
            user.write(f"{name}.yaml", job(name, FAIL, nodes=2, tasks=2, launcher=name))
        )
        assert done.returncode == 0, done.stderr
    for name in launchers:
        row = user.wait(name, "FAILED")
        assert re.fullmatch(r"rank 2 on lab\d: exit code 7", row["problem"]), (name, row)
        assert row["ended"] - row["started"] < 240
        assert row["exit_code"] != 0
        shown = user.hpctrain("status", row["run"]).stdout
        assert row["problem"] in shown
        assert "rank-2.out: rank 2 gives up" in shown
    wait_for(lambda: not sleepers())
