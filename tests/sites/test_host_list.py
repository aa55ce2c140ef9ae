"""Profiles with a list of hosts: what is refused, and what jobs get from the list."""

from pathlib import Path
from typing import Any

import pytest

from hpc_train.base.decode import decode
from hpc_train.base.errors import PlanError, SiteProfileError, SpecError
from hpc_train.jobs.job import JobSpec
from hpc_train.plans.build import make_plan
from hpc_train.plans.plan import LaunchPlan
from hpc_train.scripts.render import render_script
from hpc_train.sites.load import load_site
from tests.cases import cases

SITE = """\
schema: 1
name: lab2
description: two workstations
scheduler: hosts
hosts:
  - {name: gpu1, address: 10.0.0.11}
  - {name: gpu2, address: 10.0.0.12}
launchers: {default: torchrun, allowed: [torchrun, mpirun, spawn]}
"""
JOB: dict[str, Any] = {
    "name": "j",
    "command": ["python", "t.py"],
    "resources": {"nodes": 2, "tasks_per_node": 2},
}


def plan_of(site: str, job: dict[str, Any]) -> LaunchPlan:
    origins = {"": "job.yaml", **{key: "job.yaml:1" for key in job}}
    return make_plan(decode(job, JobSpec, origins, SpecError), load_site(site))


def write(folder: Path, text: str = SITE) -> str:
    path = folder / "lab2.yaml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("change", "message"),
    cases("sites/mistakes.yaml", "a_wrong_list"),
)
def test_a_wrong_list(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    with pytest.raises(SiteProfileError, match=r"lab2\.yaml:\d") as failure:
        load_site(write(tmp_path, SITE.replace(*change)))
    assert message in failure.value.message.replace(f"{tmp_path}/", "")


def test_an_empty_list_names_an_example(tmp_path: Path) -> None:
    begin, end = SITE.index("hosts:\n  -"), SITE.index("launchers:")
    for text in (SITE[:begin] + SITE[end:], SITE[:begin] + "hosts: []\n" + SITE[end:]):
        with pytest.raises(SiteProfileError) as failure:
            load_site(write(tmp_path, text))
        assert "the scheduler hosts needs a list of machines" in failure.value.message
        assert "hosts: [{name: gpu1, address: 10.0.0.11}" in str(failure.value.hint)


def test_machines_of_different_kinds_are_refused(tmp_path: Path) -> None:
    text = SITE.replace("10.0.0.11", "10.0.0.11, gpus: 2").replace(
        "10.0.0.12", "10.0.0.12, gpus: 4"
    )
    with pytest.raises(SiteProfileError) as failure:
        load_site(write(tmp_path, text))
    assert "lab2.yaml:7: gpu2 has 4 GPUs and gpu1 has 2" in failure.value.message


def test_a_job_has_at_most_the_hosts_and_gets_all_their_gpus(tmp_path: Path) -> None:
    site = write(tmp_path, SITE.replace("10.0.0.11", "10.0.0.11, gpus: 2"))
    plan = plan_of(site, JOB)
    assert (plan.topology.nodes, plan.topology.gpus_per_node) == (2, 2)
    assert plan.host_list is not None
    assert [host.reached for host in plan.host_list.hosts] == ["10.0.0.11", "10.0.0.12"]
    assert (plan.host_list.shared, plan.host_list.workdir) == (False, "~/hpctrain")
    with pytest.raises(PlanError, match=r"nodes = 3, but lab2 all has at most 2 \(.*lab2.yaml:5\)"):
        plan_of(site, {**JOB, "resources": {"nodes": 3}})


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"launcher": "srun"}, "does not offer srun: there is no Slurm on a list of hosts"),
        ({"elastic": {"min_nodes": 1}}, "cannot be elastic on several nodes of lab2"),
    ],
)
def test_what_a_list_of_hosts_cannot_do(tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError) as failure:
        plan_of(write(tmp_path), {**JOB, **keys})
    assert message in failure.value.message


def test_mpirun_gets_the_hosts_of_the_run_and_its_daemons_from_the_script(tmp_path: Path) -> None:
    text = render_script(plan_of(write(tmp_path), {**JOB, "launcher": "mpirun"})).text
    assert 'mpi_slots="${HPCTRAIN_ADDRESSES//,/:2,}:2"' in text
    assert 'bash -c "$mpi_hosts" hosts mpirun -np 4 --host "$mpi_slots"' in text
    assert "-x MASTER_PORT bash -c 'cd -- " in text
    assert "hpctrain_require mpirun" in text
    alone = {**JOB, "launcher": "mpirun", "resources": {"nodes": 1, "tasks_per_node": 2}}
    text = render_script(plan_of(write(tmp_path), alone)).text
    assert "mpirun -np 2 --host localhost:2" in text
    assert "mpi_hosts" not in text
