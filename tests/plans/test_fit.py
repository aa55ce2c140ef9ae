"""GPUs, cores, nodes and ports that fit the ranks, or a word about those that do not."""

import pytest

from hpc_train.base.errors import PlanError
from hpc_train.base.values import Sourced
from hpc_train.jobs.job import Topology
from hpc_train.plans.build import make_plan
from hpc_train.plans.launchers.base import find_launcher
from hpc_train.plans.node_and_rank_counts import gpu_warnings
from hpc_train.sites.profile import SiteProfile
from tests.plans.conftest import Jobs, Sites
from tests.plans.launchers.made import words

MASKS = "mask_cpu:0xfe,0xfe00"


def warnings(gpus: int, tasks: int, launcher: str = "srun", form: str = "gpus-per-node") -> str:
    size = Topology(nodes=1, tasks_per_node=tasks, gpus_per_node=gpus, cpus_per_task=1)
    return " | ".join(gpu_warnings(size, find_launcher(launcher), form))


def test_one_gpu_for_each_rank_or_none_at_all_needs_no_word() -> None:
    assert warnings(4, 4) == warnings(0, 4) == warnings(4, 2, "torchrun") == ""


@pytest.mark.parametrize(
    ("gpus", "tasks", "said"),
    [
        (4, 8, "8 ranks for 4 GPUs of a node: NCCL refuses"),
        (1, 2, "2 ranks for 1 GPU of a node"),
        (4, 3, "4 GPUs for 3 ranks of a node: 1 remain unused"),
        (4, 1, "the rank sees all 4 GPUs of its node (DataParallel, "),
        (4, 2, "each of 2 ranks sees all 4 GPUs of its node (DataP"),
    ],
)
def test_a_misfit_is_named_with_its_numbers(gpus: int, tasks: int, said: str) -> None:
    assert warnings(gpus, tasks).startswith(said)


def test_dataparallel_runs_and_is_advised_against(job: Jobs, slurm: Sites) -> None:
    """All GPUs in one rank: nothing hides them, and the advice has the number to write."""
    size = {"gpus_per_node": 4, "tasks_per_node": 1, "cpus_per_task": 8}
    for launcher in ("srun", "single"):
        plan = make_plan(job(size, launcher=launcher), slurm())
        assert (
            "DistributedDataParallel with a rank for each GPU (tasks_per_node: 4)"
            in (plan.warnings[0])
        )
        assert not any("VISIBLE" in name for name, _ in (*plan.env, *plan.launch.rank_env))
    assert "--gpu-bind" not in words(make_plan(job(size), bound(slurm, gpu_bind="closest")).launch)


def bound(slurm: Sites, cores: int | None = 16, **words: str) -> Sourced[SiteProfile]:
    launchers = {"default": "srun", "allowed": ["srun", "torchrun"], **words}
    partition = {"name": "g", "default": True, "cpus_per_node": cores}
    return slurm(launchers=launchers, partitions=[partition])


def test_masks_need_the_whole_node_and_one_for_each_rank(job: Jobs, slurm: Sites) -> None:
    site = bound(slurm, cpu_bind=MASKS)
    whole = make_plan(job({"tasks_per_node": 2}), site)
    assert f"--cpu-bind={MASKS}" in words(whole.launch)
    part = make_plan(job({"tasks_per_node": 2, "cpus_per_task": 4}), site)
    assert "--cpu-bind" not in words(part.launch)
    assert "whole node" in part.settings["cpu_bind"].why
    four = make_plan(job({"tasks_per_node": 4}), site)
    assert four.settings["cpu_bind"].why == "left out: 2 masks, 4 ranks on a node"
    agent = make_plan(job({"tasks_per_node": 2}, launcher="torchrun"), site)
    assert "mask_cpu" not in words(agent.launch)
    assert agent.settings["cpu_bind"].value is None
    assert "torchrun starts the ranks" in agent.settings["cpu_bind"].why
    assert whole.settings["cpu_bind"].value == MASKS


def test_a_gpu_binding_is_for_ranks_with_one_gpu(job: Jobs, slurm: Sites) -> None:
    site = bound(slurm, gpu_bind="closest")
    plan = make_plan(job({"gpus_per_node": 2}), site)
    assert "--gpu-bind=closest" in words(plan.launch)
    assert "number 0" in plan.settings["gpu_bind"].why


def test_an_elastic_job_outlives_a_node(job: Jobs, slurm: Sites) -> None:
    elastic = {"min_nodes": 2, "max_restarts": 5}
    plan = make_plan(job({"nodes": 4}, launcher="torchrun", elastic=elastic), slurm())
    assert dict(plan.directives)["no-kill"] == ""
    assert plan.elastic and plan.elastic.max_nodes == 4
    assert plan.settings["elastic.max_nodes"].value == 4
    fixed = make_plan(job({"nodes": 4}, launcher="torchrun", elastic={"max_restarts": 1}), slurm())
    assert "no-kill" not in dict(fixed.directives)


def test_elastic_bounds_and_launchers_that_do_not_hold(job: Jobs, slurm: Sites) -> None:
    with pytest.raises(PlanError, match=r"job\.yaml:1: the job cannot be elastic: all"):
        make_plan(job(elastic={"max_restarts": 1}), slurm())
    for bad in ({"max_nodes": 3}, {"min_nodes": 3}, {"min_nodes": 2, "max_nodes": 1}):
        with pytest.raises(PlanError, match=r"min_nodes <= max_nodes <= the job's nodes, not"):
            make_plan(job({"nodes": 2}, launcher="torchrun", elastic=bad), slurm())


def test_the_jobs_torch_wins_over_the_sites(job: Jobs, slurm: Sites) -> None:
    launchers = {"default": "torchrun", "allowed": ["torchrun"], "numa_binding": "exclusive"}
    site = slurm(launchers=launchers, torch="2.13")
    plan = make_plan(job(launcher_args=["--log-dir", "x"]), site)
    assert "--numa-binding exclusive --log-dir x --no-python" in words(plan.launch)
    assert plan.settings["torch"].value == "2.13"
    assert plan.settings["launcher_args"].value == ["--log-dir", "x"]
    assert "--numa-binding" not in words(make_plan(job(torch="2.5.1"), site).launch)


def test_where_cores_are_not_known_exclusive_is_a_whole_node(job: Jobs, slurm: Sites) -> None:
    site = bound(slurm, None, cpu_bind=MASKS)
    assert "--cpu-bind" not in words(make_plan(job({"tasks_per_node": 2}), site).launch)
    alone = make_plan(job({"tasks_per_node": 2, "exclusive": True}), site)
    assert f"--cpu-bind={MASKS}" in words(alone.launch)
