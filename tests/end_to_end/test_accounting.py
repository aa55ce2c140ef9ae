"""With accounting: what squeue has forgotten, sacct knows; accounts, QOS and preemption."""

from dataclasses import replace
from pathlib import Path

import pytest

from hpc_train.lab.state_file import Lab
from tests.conftest import Slurm
from tests.end_to_end.queue import starts_again
from tests.end_to_end.studies import job
from tests.end_to_end.user import User, user_of
from tests.submissions.waiting import wait_for

pytestmark = [pytest.mark.slurm]


def test_accounting(accounting_lab: Lab, slurm: Slurm, tmp_path: Path) -> None:
    user = user_of(accounting_lab, tmp_path)
    refused = user.submit(user.write("a.yaml", job("a", "true", account="nobodys")))
    assert refused.returncode == 1
    assert "Invalid account" in refused.stderr
    assert "sacctmgr show associations" in refused.stderr
    assert "results" not in {path.name for path in user.folder.iterdir()}

    user.submit(user.write("well.yaml", job("well", "true", account="research")))
    user.submit(user.write("badly.yaml", job("badly", "exit 7")))
    user.submit(user.write("ended.yaml", job("ended", "sleep 280")))
    user.started("ended")
    slurm("scancel", user.run("ended")["job"])
    wait_for(lambda: slurm("squeue", "--noheader") == "")
    later = forgetful(user)
    # sacct lags behind.
    later.wait("ended", "CANCELLED")
    assert later.run("ended")["problem"] != ""
    assert later.run("well")["state"] == "COMPLETED"
    row = later.run("badly")
    assert (row["state"], row["problem"]) == ("FAILED", "rank 0 on lab1: exit code 7")

    whole = {"nodes": 2, "cpus_per_task": 8}
    script = '[ "${SLURM_RESTART_COUNT:-0}" != 0 ] || sleep 280'
    user.submit(user.write("first.yaml", job("first", script, qos="normal", resources=whole)))
    user.started("first")
    # As long as it has both nodes, the other one waits.
    script = "until [ -e go ]; do sleep 0.1; done"
    user.submit(user.write("urgent.yaml", job("urgent", script, qos="high", resources=whole)))
    user.wait("urgent", "RUNNING")
    user.wait("first", "PENDING")
    row = user.run("first")
    (user.folder / "go").touch()
    user.wait("urgent", "COMPLETED")
    starts_again(row["job"])
    user.wait("first", "COMPLETED")
    assert user.run("first")["restart_count"] == 1


def forgetful(user: User) -> User:
    """Return the user with a squeue that knows no job, as after MinJobAge."""
    programs = user.folder / "forgetful"
    programs.mkdir()
    (programs / "squeue").write_text("#!/bin/sh\nexit 0\n")
    (programs / "squeue").chmod(0o755)
    path = f"{programs}:{user.environment['PATH']}"
    return replace(user, environment={**user.environment, "PATH": path})
