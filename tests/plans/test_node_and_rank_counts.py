"""Counts: what is asked for, what follows, and why."""

from typing import Any

import pytest

from hpc_train.base.values import Sourced
from hpc_train.plans.build import make_plan
from hpc_train.plans.context import resolve_context
from hpc_train.plans.node_and_rank_counts import resolve_topology
from hpc_train.plans.plan import JobVar, Joined, Text
from hpc_train.sites.load import Machine, load_site
from hpc_train.sites.profile import SiteProfile
from tests.plans.conftest import Jobs, Sites


@pytest.mark.parametrize(
    ("resources", "counts"),
    [
        ({}, (1, 0, 8)),
        ({"tasks_per_node": 2}, (2, 0, 4)),
        ({"tasks_per_node": 16}, (16, 0, 1)),
        ({"tasks_per_node": 2, "cpus_per_task": 3}, (2, 0, 3)),
    ],
)
def test_on_this_machine_without_gpus(
    job: Jobs,
    local: Sourced[SiteProfile],
    resources: dict[str, Any],
    counts: tuple[int, int, int],
) -> None:
    found, settings = resolve_topology(resolve_context(job(resources), local))
    assert (found.tasks_per_node, found.gpus_per_node, found.cpus_per_task) == counts
    if "cpus_per_task" not in resources:
        assert settings["cpus_per_task"].origin == "this machine"
        assert settings["cpus_per_task"].why == (
            f"8 cores for {counts[0]} rank{'s' if counts[0] > 1 else ''}"
        )


@pytest.mark.parametrize(
    ("resources", "tasks", "gpus"),
    [
        ({}, 1, 1),
        ({"tasks_per_node": 2}, 2, 2),
        ({"tasks_per_node": 8}, 8, 4),
        ({"gpus_per_node": 3}, 3, 3),
    ],
)
def test_on_this_machine_with_four_gpus(
    job: Jobs, resources: dict[str, Any], tasks: int, gpus: int
) -> None:
    topology, _ = resolve_topology(
        resolve_context(job(resources), load_site("local", Machine(cpus=8, gpus=4)))
    )
    assert (topology.tasks_per_node, topology.gpus_per_node) == (tasks, gpus)


def test_one_rank_per_gpu_on_a_cluster(job: Jobs, slurm: Sites) -> None:
    topology, settings = resolve_topology(
        resolve_context(job({"nodes": 2, "gpus_per_node": 4}), slurm(partitions=[]))
    )
    assert topology.world_size == 8
    assert settings["tasks_per_node"].why == "one rank per GPU"
    assert settings["nodes"].origin == "job.yaml:9"
    assert settings["cpus_per_task"].why == "the site's cores per node are not known"


def test_whole_nodes_bring_all_their_cores(job: Jobs, slurm: Sites) -> None:
    whole = slurm(partitions=[{"name": "p", "default": True, "exclusive": True}])
    plan = make_plan(job({"nodes": 2, "gpus_per_node": 4}), whole)
    assert plan.topology.cpus_per_task is None
    assert ("exclusive", "") in plan.directives
    assert "cpus-per-task" not in dict(plan.directives)
    per_rank = JobVar(name="cpus_per_rank")
    assert dict(plan.env)["OMP_NUM_THREADS"] == per_rank
    assert Joined(parts=(Text(text="--cpus-per-task="), per_rank)) in plan.launch.argv
    agent = make_plan(job({"gpus_per_node": 4}, launcher="torchrun"), whole).launch.argv
    assert Joined(parts=(Text(text="--cpus-per-task="), JobVar(name="cpus_on_node"))) in agent
    shared = make_plan(job({"gpus_per_node": 4, "exclusive": False, "cpus_per_task": 2}), whole)
    assert shared.topology.cpus_per_task == 2
    asked = make_plan(job({"gpus_per_node": 4, "exclusive": True}), slurm(partitions=[]))
    assert asked.settings["cpus_per_task"].origin == "job.yaml:9"
