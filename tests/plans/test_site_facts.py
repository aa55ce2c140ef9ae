"""What a partition says of its nodes, and a site of itself, as a plan shows it."""

from typing import Any

import msgspec
import pytest

from hpc_train.base.values import Sourced
from hpc_train.plans.build import make_plan
from hpc_train.plans.plan import EnvChange
from hpc_train.sites.profile import SiteProfile
from tests.plans.conftest import Jobs, Sites

TURNED: dict[str, Any] = {
    "name": "p",
    "default": True,
    "gpus_per_node": 4,
    "gpu_order": [3, 2, 1, 0],
}
TURNED["cpus_per_gpu"] = 1


def turned(slurm: Sites, gpu_type: str = "a100", **keys: Any) -> Sourced[SiteProfile]:
    return slurm(partitions=[{**TURNED, "gpu_type": gpu_type}], **keys)


@pytest.mark.parametrize("launcher", ["srun", "torchrun", "mpirun", "spawn"])
@pytest.mark.parametrize(
    ("gpu_type", "name"), [("a100", "CUDA_VISIBLE_DEVICES"), ("mi250", "ROCR_VISIBLE_DEVICES")]
)
def test_each_rank_of_a_whole_node_takes_the_gpu_near_its_cores(
    job: Jobs, slurm: Sites, launcher: str, gpu_type: str, name: str
) -> None:
    plan = make_plan(job({"gpus_per_node": 4}, launcher=launcher), turned(slurm, gpu_type))
    assert plan.changes == (EnvChange(name=name, value="3,2,1,0", scope="ranks"),)
    shown = plan.settings[f"env.{name} [ranks]"]
    assert shown.origin == "big.yaml"
    assert "nearest to its cores" in shown.why


@pytest.mark.parametrize(
    ("resources", "keys", "why"),
    [
        ({"gpus_per_node": 2}, {}, "it is for all 4 GPUs of a node, the job has 2"),
        ({"gpus_per_node": 4, "tasks_per_node": 1}, {}, "it is for 4 ranks of a node, the job has"),
        ({"gpus_per_node": 4}, {"gpu_request": "gpus-per-task"}, "Slurm gives each rank its own"),
        ({"gpus_per_node": 4}, {"gpu_type": "mystery"}, "the profile does not state network.gpus"),
    ],
)
def test_an_order_that_does_not_hold_is_left_out(
    job: Jobs, slurm: Sites, resources: dict[str, int], keys: dict[str, str], why: str
) -> None:
    plan = make_plan(job(resources), turned(slurm, **keys))
    assert plan.changes == ()
    assert plan.settings["gpu_order"].why.startswith(f"left out: {why}")


def test_a_binding_of_ranks_to_gpus_leaves_no_order(job: Jobs, slurm: Sites) -> None:
    launchers = {"default": "srun", "allowed": ["srun", "torchrun"], "gpu_bind": "closest"}
    site = turned(slurm, launchers=launchers)
    assert make_plan(job({"gpus_per_node": 4}), site).changes == ()
    assert make_plan(job({"gpus_per_node": 4}, launcher="torchrun"), site).changes
    unbound = turned(slurm, launchers={**launchers, "gpu_bind": "none"})
    assert make_plan(job({"gpus_per_node": 4}), unbound).changes


def test_a_partition_has_its_own_interfaces_and_adapters(job: Jobs, slurm: Sites) -> None:
    network = {"fabric": "infiniband", "interfaces": ["ib0"], "hcas": ["mlx5_0"]}
    own: dict[str, Any] = {"name": "h100", "interfaces": ["eno2np0"], "hcas": ["mlx5_4", "mlx5_5"]}
    own["cpus_per_gpu"] = 1
    plain = slurm(
        network=network, partitions=[{"name": "a100", "cpus_per_gpu": 1}, own], preflight={}
    )
    places = {**plain.origins, "partitions.1.hcas": "big.yaml:7"}
    site = msgspec.structs.replace(plain, origins=places)
    size = {"nodes": 2, "gpus_per_node": 1}
    theirs, ours = (make_plan(job(size, partition=name), site) for name in ("a100", "h100"))
    env = dict(ours.env)
    assert (env["NCCL_SOCKET_IFNAME"], env["NCCL_IB_HCA"]) == ("=eno2np0", "=mlx5_4,mlx5_5")
    assert ours.settings["env.NCCL_IB_HCA"].origin == "big.yaml:7"
    assert ours.preflight and theirs.preflight
    assert ours.preflight.interfaces == ("eno2np0",)
    assert ours.preflight.hcas == (("mlx5_4", ""), ("mlx5_5", ""))
    assert dict(theirs.env)["NCCL_SOCKET_IFNAME"] == "=ib0"
    assert theirs.preflight.interfaces == ("ib0",)


def test_the_way_out_is_in_each_job_unless_it_says_otherwise(job: Jobs, slurm: Sites) -> None:
    proxy = "http://proxy.example:3128"
    internet = {"access": "proxy", "env": {"http_proxy": proxy, "https_proxy": proxy}}
    plan = make_plan(job(env={"https_proxy": ""}), slurm(internet=internet))
    env = dict(plan.env)
    assert (env["http_proxy"], env["https_proxy"]) == (proxy, "")
    assert plan.settings["env.http_proxy"].why == "internet of the nodes: proxy"
    assert plan.settings["env.https_proxy"].origin == "job.yaml:8"
    block = {"mode": "default", "env": {"http_proxy": "http://other"}}
    both = make_plan(job(), slurm(internet=internet, env_blocks=[block]))
    assert dict(both.env)["http_proxy"] == proxy


@pytest.mark.parametrize(
    ("keys", "name", "why"),
    [
        ({"lifecycle": {"requeue": True, "note": "drained nodes"}}, "requeue", "; drained nodes"),
        ({"lifecycle": {"requeue": False}}, "requeue", "Slurm does not start the job again when"),
        ({"step_manager": "psid"}, "step_manager", "not slurmd: each srun states its cores"),
        (
            {
                "partitions": [
                    {
                        "name": "p",
                        "default": True,
                        "preemption": {"safe": "10m", "grace": "5m", "warning": False},
                    }
                ]
            },
            "preemption",
            "preempt this one; not in its first 00:10:00; 00:05:00 after the first signal; without "
            "any signal before; ranks have only the seconds of Slurm's KillWait to save",
        ),
    ],
)
def test_customs_are_shown(
    job: Jobs, slurm: Sites, keys: dict[str, Any], name: str, why: str
) -> None:
    plan = make_plan(job({"cpus_per_task": 2}), slurm(**keys))
    assert why in plan.settings[name].why
    assert plan.settings[name].origin
    assert name not in make_plan(job(), slurm()).settings


def test_a_launcher_that_the_site_advises_against_is_warned_of(job: Jobs, slurm: Sites) -> None:
    launchers = {
        "default": "srun",
        "allowed": ["srun", "torchrun"],
        "warned": {"torchrun": "ten times slower here"},
    }
    plan = make_plan(job(launcher="torchrun"), slurm(launchers=launchers))
    assert plan.warnings == (
        "job.yaml:1: big advises against torchrun: ten times slower here (big.yaml)",
    )
    assert make_plan(job(), slurm(launchers=launchers)).warnings == ()


def test_options_that_the_scheduler_does_not_have_are_named(
    job: Jobs, local: Sourced[SiteProfile], slurm: Sites
) -> None:
    keys = {"qos": "high", "constraint": "a100", "directives": {"nice": 5}, "account": "physics"}
    found = [text for text in make_plan(job(**keys), local).warnings if "has no option" in text]
    assert found == [
        "job.yaml:1: local (scheduler local) has no option for qos, constraint, directives.nice: "
        "the job runs without"
    ]
    for plan in (make_plan(job(**keys), slurm()), make_plan(job(account="physics"), local)):
        assert not any("has no option" in text for text in plan.warnings)
