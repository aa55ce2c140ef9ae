"""A lab with a database: sacct knows the jobs, QOS high is there."""

import pytest

from hpc_train.lab.state_file import Lab
from tests.lab.conftest import Slurm
from tests.submissions.waiting import wait_for

pytestmark = [pytest.mark.slurm]


def test_sacct_shows_the_job(accounting_lab: Lab, slurm: Slurm) -> None:
    slurm("srun", "-N2", "--qos=high", "--account=research", "--job-name=seen", "true")
    # slurmctld hands finished jobs over in batches.
    wait_for(lambda: _jobs(slurm).split() == ["seen|COMPLETED|research|high"])
    assert "normal" in slurm("sacctmgr", "-nP", "list", "qos", "high", "format=preempt")


def _jobs(slurm: Slurm) -> str:
    return slurm("sacct", "-nXP", "--format=JobName,State,Account,QOS")
