"""On the lab, commands without --site take its profile, with and without SLURM_CONF."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.lab.state_file import Lab
from hpc_train.model.detected import CONF_FILES
from tests.end_to_end.user import User

pytestmark = [pytest.mark.slurm]
JOB = {
    "name": "where",
    "command": ["bash", "-c", "echo on $SLURM_JOB_NUM_NODES nodes"],
    "launcher": "srun",
    "resources": {"nodes": 2, "tasks_per_node": 1, "gpus_per_node": 0, "cpus_per_task": 1},
}


@pytest.mark.skipif(any(map(Path.is_file, CONF_FILES)), reason="this machine has a slurm.conf")
def test_a_job_without_a_site_runs_on_the_lab(user: User) -> None:
    file = user.write("job.yaml", JOB)
    done = user.hpctrain("submit", file, "--wait")
    assert done.returncode == 0, done.stderr
    found = user.hpctrain("site", "detect")
    assert found.returncode == 0, found.stderr
    name, _, reason = found.stdout.strip().partition(": ")
    assert name == "lab" and reason.startswith("ClusterName in /")
    here = "hpctrain: this host looks like a login node of lab"
    assert f"{here}: site lab ({reason})\n" in done.stderr
    assert "on 2 nodes" in user.hpctrain("logs", "where").stdout
    refused = user.hpctrain("render", file, "--site", "local", "--launcher", "torchrun")
    assert refused.returncode == 2
    assert "2 nodes: --site lab" in refused.stderr


def test_slurms_own_variable_selects_the_lab(lab: Lab, user: User) -> None:
    environment = {"SLURM_CONF": f"{lab.settings.folder}/slurm.conf"}
    found = user.hpctrain("site", "detect", **environment)
    assert (found.returncode, found.stdout) == (0, "lab: ClusterName lab\n"), found.stderr
    where = "this host looks like a login node of the Slurm cluster lab: site lab (ClusterName lab)"
    assert f"hpctrain: without --site: {where}\n" in found.stderr
    done = user.hpctrain("submit", user.write("job.yaml", JOB), **environment)
    assert done.returncode == 0, done.stderr
    assert where in done.stderr
    assert user.run("where")["job"]
