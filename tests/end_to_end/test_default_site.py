"""On the lab, commands without --site take its profile where SLURM_CONF leads to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.lab.state_file import Lab
from hpc_train.sites.detection import CONF_FILES
from tests.end_to_end.user import User

pytestmark = [pytest.mark.slurm]
JOB = {
    "name": "where",
    "command": ["bash", "-c", "echo on $SLURM_JOB_NUM_NODES nodes"],
    "launcher": "srun",
    "resources": {"nodes": 2, "tasks_per_node": 1, "gpus_per_node": 0, "cpus_per_task": 1},
}


@pytest.mark.skipif(any(map(Path.is_file, CONF_FILES)), reason="this machine has a slurm.conf")
def test_a_lab_is_a_site_only_where_its_environment_file_was_sourced(user: User) -> None:
    file = user.write("job.yaml", JOB)
    found = user.hpctrain("site", "detect")
    assert "lab" not in found.stdout
    refused = user.hpctrain("submit", file)
    assert refused.returncode == 2
    assert "local forbids srun" in refused.stderr
    assert user.hpctrain("render", file, "--site", "lab").returncode == 0


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
