"""Cores, memory, GPUs and storage, asked for in each site's way."""

from typing import Any

import pytest

from hpc_train.base.errors import PlanError
from hpc_train.base.values import Sourced
from hpc_train.jobs.job import JobSpec
from hpc_train.plans.build import make_plan
from hpc_train.plans.directives import setting_of
from hpc_train.plans.plan import JobVar
from hpc_train.plans.shared_allocation import allocate
from hpc_train.sites.profile import SiteProfile
from tests.plans.conftest import Jobs, Sites
from tests.plans.launchers.made import words

GPU = {"name": "p", "default": True, "gpus_per_node": 4, "gpu_type": "a100"}
CORES = {**GPU, "cpus_per_gpu": 1}


def options(job: Sourced[JobSpec], site: Sourced[SiteProfile]) -> dict[str, str]:
    return dict(make_plan(job, site).directives)


@pytest.mark.parametrize(
    ("resources", "partition", "expected"),
    [
        ({"gpus_per_node": 2}, {"cpus_per_gpu": 7}, (7, "14 cores with 2 GPUs for 2 ranks")),
        ({"gpus_per_node": 4, "tasks_per_node": 2}, {"cpus_per_gpu": 7}, (14, "28 cores with 4")),
        (
            {"gpus_per_node": 1},
            {"cpus_per_gpu": 7, "cpus_per_node": 56},
            (7, "7 cores with 1 GPU "),
        ),
        (
            {"gpus_per_node": 0},
            {"cpus_per_gpu": 7, "cpus_per_node": 56},
            (56, "56 cores for 1 rank"),
        ),
        ({"gpus_per_node": 1}, {"cpus_per_node": 64}, (64, "64 cores for 1 rank")),
        ({"gpus_per_node": 1}, {"cpus_per_node": 64, "shared": True}, (16, "16 cores with 1 GPU")),
        ({"gpus_per_node": 4}, {"cpus_per_node": 64, "shared": True}, (16, "64 cores for 4 ranks")),
        ({"gpus_per_node": 2, "cpus_per_task": 3}, {"cpus_per_gpu": 7}, (3, "")),
    ],
)
def test_cores_that_go_with_gpus(
    job: Jobs,
    slurm: Sites,
    resources: dict[str, int],
    partition: dict[str, Any],
    expected: tuple[int, str],
) -> None:
    plan = make_plan(job(resources), slurm(partitions=[{**GPU, **partition}]))
    assert plan.topology.cpus_per_task == expected[0]
    assert plan.settings["cpus_per_task"].why.startswith(expected[1])


def test_cores_that_nobody_may_ask_for_are_counted_by_the_step(job: Jobs, slurm: Sites) -> None:
    site = slurm(cpu_request="forbidden", partitions=[{**GPU, "cpus_per_gpu": 72}])
    plan = make_plan(job({"gpus_per_node": 4}), site)
    assert "cpus-per-task" not in dict(plan.directives)
    assert "--cpus-per-task=72" in words(plan.launch)
    assert dict(plan.env)["OMP_NUM_THREADS"] == "72"
    assert plan.warnings == ()
    unknown = make_plan(job({"gpus_per_node": 4}), slurm(cpu_request="forbidden", partitions=[GPU]))
    assert unknown.settings["cpus_per_task"].why.startswith("the cores that the site gives")
    assert JobVar(name="cpus_per_rank") in dict(unknown.env).values()


@pytest.mark.parametrize(
    ("request_", "mem", "expected"),
    [
        ("allowed", None, {}),
        ("allowed", "80G", {"mem": "80G"}),
        ("zero", None, {"mem": "0"}),
        ("zero", "80G", {"mem": "80G"}),
        ("required", None, {"mem": "240G"}),
        ("required", "80G", {"mem": "80G"}),
        ("per-gpu", None, {"mem-per-gpu": "60G"}),
        ("per-gpu", "100G", {"mem-per-gpu": "25G"}),
        ("per-gpu", "2003M", {"mem-per-gpu": "500M"}),
        ("per-cpu", "64G", {"mem-per-cpu": "2G"}),
        ("per-cpu", "33G", {"mem-per-cpu": "1056M"}),
        ("per-cpu", None, {}),
        ("forbidden", None, {}),
    ],
)
def test_memory_in_the_sites_words(
    job: Jobs, slurm: Sites, request_: str, mem: str | None, expected: dict[str, str]
) -> None:
    partition = {**GPU, "mem_per_gpu": "60G", "cpus_per_gpu": 8}
    resources = {"gpus_per_node": 4, **({"mem": mem} if mem else {})}
    found = options(job(resources), slurm(mem_request=request_, partitions=[partition]))
    assert {key: value for key, value in found.items() if key.startswith("mem")} == expected


def test_the_memory_of_a_job_that_requests_none_is_announced(job: Jobs, slurm: Sites) -> None:
    site = slurm(default_mem_per_cpu="1000M", partitions=[{**GPU, "cpus_per_gpu": 16}])
    (warning,) = make_plan(job({"gpus_per_node": 4}), site).warnings
    assert "big gives 1000M for each core, 64000M on each node" in warning
    assert make_plan(job({"gpus_per_node": 4, "mem": "1G"}), site).warnings == ()


@pytest.mark.parametrize(("hint", "threads"), [({}, "16"), ({"hint": "nomultithread"}, "32")])
def test_hardware_threads_are_no_cores(
    job: Jobs, slurm: Sites, hint: dict[str, str], threads: str
) -> None:
    partition = {**GPU, "cpus_per_gpu": 32, "threads_per_core": 2}
    plan = make_plan(job({"gpus_per_node": 4}), slurm(directives=hint, partitions=[partition]))
    assert dict(plan.directives)["cpus-per-task"] == "32"
    assert dict(plan.env)["OMP_NUM_THREADS"] == threads


def test_memory_that_nobody_names(job: Jobs, slurm: Sites) -> None:
    with pytest.raises(PlanError, match=r"^job\.yaml:1: big needs to know the memory of a node"):
        make_plan(job(), slurm(mem_request="required"))
    with pytest.raises(PlanError, match=r"mem = 500G, but big p has at most 480G"):
        make_plan(
            job({"mem": "500G", "gpus_per_node": 0}),
            slurm(partitions=[{**GPU, "mem_per_node": "480G"}]),
        )


@pytest.mark.parametrize(
    ("keys", "launcher", "asked"),
    [
        (("gpus-per-node", False), "srun", "gpus-per-node=4"),
        (("gpus-per-node", True), "srun", "gpus-per-node=a100:4"),
        (("gres", False), "srun", "gres=gpu:4"),
        (("gres", True), "torchrun", "gres=gpu:a100:4"),
        (("gpus", False), "srun", "gpus=8"),
        (("gpus", True), "torchrun", "gpus=a100:8"),
        (("gpus-per-task", False), "srun", "gpus-per-task=1"),
        (("gpus-per-task", True), "torchrun", "gpus-per-task=a100:4"),
    ],
)
def test_gpus_in_the_sites_dialect(
    job: Jobs, slurm: Sites, keys: tuple[str, bool], launcher: str, asked: str
) -> None:
    option, value = asked.split("=")
    site = slurm(gpu_request=keys[0], gpu_request_typed=keys[1], partitions=[CORES])
    given = job({"nodes": 2, "gpus_per_node": 4}, launcher=launcher)
    plan, nested = make_plan(given, site), make_plan(given, site, nested=True)
    assert {k: v for k, v in plan.directives if k.startswith("g")} == {option: value}
    step = f"--{option}={value}"
    assert (step in words(plan.launch)) == (option == "gpus-per-task")
    assert step in words(nested.launch)
    shared = dict(allocate(site, [("r", nested)], "s").directives)
    assert shared[option] == value
    assert setting_of(option, plan.settings).origin == "job.yaml:9"


def test_a_type_that_sbatch_would_misread_is_refused(job: Jobs, slurm: Sites) -> None:
    site = slurm(gpu_request_typed=True, partitions=[{**CORES, "gpu_type": "a$(id)"}])
    with pytest.raises(PlanError, match=r"gpu_type = .* cannot be written as an #SBATCH value"):
        make_plan(job({"gpus_per_node": 1}), site)


def test_gpus_that_cannot_be_counted_per_task(job: Jobs, slurm: Sites) -> None:
    with pytest.raises(PlanError, match="4 GPUs of a node for 3 tasks: the site counts GPUs per"):
        make_plan(
            job({"gpus_per_node": 4, "tasks_per_node": 3}), slurm(gpu_request="gpus-per-task")
        )


@pytest.mark.parametrize("spelled", ["exclusive", "--exclusive"])
def test_an_option_that_the_site_refuses(job: Jobs, slurm: Sites, spelled: str) -> None:
    site = slurm(forbidden={spelled: "bills the whole node"})
    with pytest.raises(PlanError) as failure:
        make_plan(job({"exclusive": True}), site)
    assert failure.value.message == (
        "job.yaml:9: big refuses --exclusive: bills the whole node (big.yaml)"
    )
    make_plan(job(), site)
