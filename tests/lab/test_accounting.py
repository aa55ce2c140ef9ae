"""A lab with a database: sacct knows the jobs, QOS high is there."""

from __future__ import annotations

import pytest

from hpc_train.lab import state_file
from hpc_train.lab.run_program import installed
from tests.lab.conftest import Hpctrain, Slurm, refuse
from tests.pipeline.waiting import wait_for

pytestmark = [pytest.mark.slurm, pytest.mark.slow]


def test_sacct_shows_the_job(
    no_lab: None, hpctrain: Hpctrain, slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (installed("slurmdbd") and installed("mariadbd")):
        refuse("slurmdbd, mariadbd not found; install slurmdbd mariadb-server")
    done = hpctrain("up", "--nodes", "2", "--accounting")
    assert done.returncode == 0, done.stderr
    lab = state_file.read()
    assert lab is not None
    monkeypatch.setenv("SLURM_CONF", f"{lab.settings.folder}/slurm.conf")
    slurm("srun", "-N2", "--qos=high", "--account=research", "--job-name=seen", "true")
    # slurmctld hands finished jobs over in batches.
    wait_for(lambda: _jobs(slurm).split() == ["seen|COMPLETED|research|high"])
    assert "normal" in slurm("sacctmgr", "-nP", "list", "qos", "high", "format=preempt")
    assert hpctrain("down").returncode == 0


def _jobs(slurm: Slurm) -> str:
    return slurm("sacct", "-nXP", "--format=JobName,State,Account,QOS")
