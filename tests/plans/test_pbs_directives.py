"""Directives of PBS: chunks, flat requests, and what PBS does not have."""

from collections.abc import Callable
from typing import Any

import pytest

from hpc_train.base.errors import PlanError, SiteProfileError
from hpc_train.plans.build import make_plan
from hpc_train.plans.directives import setting_of
from hpc_train.plans.plan import LaunchPlan
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.load import check_profile
from tests.plans.conftest import Job, Site

Sites = Callable[..., Site]
Jobs = Callable[..., Job]
LAUNCHERS = {"default": "torchrun", "allowed": ["torchrun", "mpirun", "mpiexec", "srun", "single"]}
NODES = [{"name": "prod", "default": True, "cpus_per_node": 64}]


@pytest.fixture
def pbs(slurm: Sites) -> Sites:
    def make(**keys: Any) -> Site:
        given = {"scheduler": "pbs", "launchers": LAUNCHERS, "partitions": NODES, **keys}
        return slurm(**given)

    return make


def lines(plan: LaunchPlan) -> list[str]:
    batch = find_batch_system("pbs")
    return [batch.directive(*one).removeprefix("#PBS ") for one in plan.directives]


def test_chunks_are_kept_apart(pbs: Sites, job: Jobs) -> None:
    wanted = job(
        {"nodes": 2, "gpus_per_node": 4, "mem": "480G", "time": "1h30m"}, account="ab", name="n"
    )
    assert lines(make_plan(wanted, pbs())) == [
        "-N n",
        "-A ab",
        "-q prod",
        "-l select=2:ncpus=64:ngpus=4:mem=480gb",
        "-l place=scatter",
        "-l walltime=01:30:00",
        "-j oe",
        "-k doe",
        "-r n",
    ]


def test_a_launcher_with_ranks_as_processes_has_them_in_the_node_file(
    pbs: Sites, job: Jobs
) -> None:
    plan = make_plan(job({"nodes": 2, "gpus_per_node": 4}, launcher="mpirun"), pbs())
    assert "-l select=2:ncpus=64:mpiprocs=4:ngpus=4" in lines(plan)


def test_a_flat_request_has_the_totals(pbs: Sites, job: Jobs) -> None:
    site = pbs(pbs={"shape": "flat", "project": "-P", "live_output": False})
    size = {"nodes": 3, "gpus_per_node": 4, "mem": "1001M", "time": "2d"}
    found = lines(make_plan(job(size, account="ab"), site))
    assert found[1:] == [
        "-P ab",
        "-q prod",
        "-l ncpus=192",
        "-l ngpus=12",
        "-l mem=3003mb",
        "-l walltime=48:00:00",
        "-j oe",
        "-r n",
    ]


def test_a_flat_request_for_parts_of_several_nodes_is_refused(pbs: Sites, job: Jobs) -> None:
    """PBS could place its totals on one node."""
    part = {"gpus_per_node": 2, "tasks_per_node": 2, "cpus_per_task": 4}
    site = pbs(pbs={"shape": "flat", "project": "-P", "live_output": False})
    with pytest.raises(PlanError, match="needs 8 of each of 2 nodes; PBS gets totals only"):
        make_plan(job({"nodes": 2, **part}, account="ab"), site)
    make_plan(job({"nodes": 1, **part}, account="ab"), site)


@pytest.mark.parametrize(
    ("dialect", "exclusive", "expected"),
    [
        ({}, True, "-l place=scatter:excl"),
        ({"place": "pack"}, False, "-l place=pack"),
        ({"shape": "flat"}, True, "-l place=excl"),
    ],
)
def test_place(
    pbs: Sites, job: Jobs, dialect: dict[str, str], exclusive: bool, expected: str
) -> None:
    plan = make_plan(job({"exclusive": exclusive, "gpus_per_node": 0}), pbs(pbs=dialect))
    assert expected in lines(plan)


def test_what_the_site_gives_with_its_nodes_is_not_requested(pbs: Sites, job: Jobs) -> None:
    site = pbs(pbs={"chunk": {"system": "polaris"}}, gpu_request="none", cpu_request="forbidden")
    assert "-l select=2:system=polaris" in lines(make_plan(job({"nodes": 2}), site))


def test_resources_and_options_of_the_site_and_the_job_are_added(pbs: Sites, job: Jobs) -> None:
    site = pbs(directives={"l": "filesystems=home:eagle,software=x", "W": "group_list=g"})
    plan = make_plan(job(directives={"r": "y", "W": False}), site)
    found = lines(plan)
    assert found[-3:] == ["-l filesystems=home:eagle", "-l software=x", "-r y"]
    assert "-r n" not in found
    assert setting_of("filesystems", plan.settings).origin.startswith("big.yaml")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"qos": "high"}, "qos is an option of Slurm, and PBS has none like it"),
        ({"constraint": "a"}, "constraint is an option of Slurm"),
        ({"directives": {"l": "walltime=1:0:0"}}, "this job has -l walltime=01:00:00 already"),
        ({"directives": {"v": "A=1"}}, "directives.v has no effect: qsub is called with a -v"),
        ({"directives": {"reservation": "x"}}, "qsub has no option 'reservation'"),
        ({"secrets": {"TOKEN": "env"}}, "a job of PBS does not have the variables of the shell"),
        ({"launcher": "srun"}, "srun starts ranks in a job of Slurm"),
        ({"elastic": {"min_nodes": 1}}, "a node that fails ends the job"),
    ],
)
def test_what_pbs_does_not_have_is_refused(
    pbs: Sites, job: Jobs, keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(PlanError, match=message):
        make_plan(job({"nodes": 2, "time": "1h"}, **keys), pbs())


@pytest.mark.parametrize(
    ("directives", "message"),
    [
        ({"q": "prod"}, "hpctrain sets -q itself"),
        ({"Z": "x"}, "neither sbatch nor qsub has an option 'Z'"),
        ({"l": "filesystems"}, "is no list of resources"),
        ({"M": "a b"}, "cannot be written as a #PBS value"),
    ],
)
def test_options_of_a_profile_are_checked(
    pbs: Sites, directives: dict[str, str], message: str
) -> None:
    with pytest.raises(SiteProfileError, match=message):
        check_profile(pbs(directives=directives))


@pytest.mark.parametrize("starter", ["tmrsh", "pals", "openmpi"])
def test_the_profile_names_what_starts_a_process_on_each_node(
    pbs: Sites, job: Jobs, starter: str
) -> None:
    plan = make_plan(job({"nodes": 2}), pbs(pbs={"starter": starter}))
    expected = {"tmrsh": "bash", "pals": "mpiexec", "openmpi": "mpirun"}
    assert getattr(plan.launch.argv[0], "text", "") == expected[starter]
