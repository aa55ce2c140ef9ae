"""What holds for every fabric: precedence, the vendor's script, pairs, and nothing harmful."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpc_train.plans.build import make_plan
from hpc_train.plans.plan import LaunchPlan
from tests.plans.conftest import Jobs, Sites

Planned = Callable[[dict[str, Any], int, int, str], LaunchPlan]

ALWAYS = {"OMP_NUM_THREADS", "PYTHONUNBUFFERED"}


@pytest.mark.parametrize("gpu_type", ["mi250", "MI300X", "gfx942", "amd-mi210"])
def test_the_vendor_follows_from_the_partitions_gpus(
    job: Jobs, slurm: Sites, gpu_type: str
) -> None:
    partition = {"name": "gpu", "default": True, "gpu_type": gpu_type, "cpus_per_gpu": 1}
    site = slurm(network={"fabric": "slingshot"}, partitions=[partition])
    plan = make_plan(job({"nodes": 2, "gpus_per_node": 8}), site)
    assert dict(plan.env)["HSA_FORCE_FINE_GRAIN_PCIE"] == "1"
    nvidia = slurm(network={"fabric": "slingshot"}, partitions=[{**partition, "gpu_type": "a100"}])
    plan = make_plan(job({"nodes": 2, "gpus_per_node": 8}), nvidia)
    assert "HSA_FORCE_FINE_GRAIN_PCIE" not in dict(plan.env)


def test_the_sites_env_wins_over_rules_and_the_jobs_over_both(job: Jobs, slurm: Sites) -> None:
    site = slurm(
        network={"fabric": "slingshot"},
        env={"NCCL_CROSS_NIC": 0, "FI_CXI_RX_MATCH_MODE": "software"},
    )
    mine = {"FI_CXI_RX_MATCH_MODE": "hardware", "NCCL_NET": "Socket"}
    plan = make_plan(job({"nodes": 2, "gpus_per_node": 4}, env=mine), site)
    env = dict(plan.env)
    assert env["NCCL_CROSS_NIC"] == "0"
    assert env["FI_CXI_RX_MATCH_MODE"] == "hardware"
    assert env["NCCL_NET"] == "Socket"
    assert plan.settings["env.NCCL_NET"].origin == "job.yaml:8"


def test_the_vendors_script_stands_between_the_sites_setup_and_the_jobs(
    job: Jobs, slurm: Sites
) -> None:
    network = {"fabric": "gcp-gib", "script": "/usr/local/gib/it's/set_nccl_env.sh"}
    site = slurm(network=network, setup=["module load a"])
    for nodes in (1, 2):
        wanted = job({"nodes": nodes, "gpus_per_node": 8}, setup=["module load b"])
        plan = make_plan(wanted, site)
        sourced = "source '/usr/local/gib/it'\"'\"'s/set_nccl_env.sh'"
        assert plan.setup == ("module load a", sourced, "module load b")
        assert plan.settings["setup.1"].why
    assert make_plan(job({"nodes": 2}), site).setup == ("module load a",)


@pytest.mark.parametrize(("plugin", "net"), [(None, "IB"), ("none", "IB"), ("mine", None)])
def test_only_a_plug_in_takes_the_place_of_the_built_in_network(
    planned: Planned, plugin: str | None, net: str | None
) -> None:
    network = {"fabric": "infiniband", **({"plugin": plugin} if plugin else {})}
    env = dict(planned(network, 2, 8, "srun").env)
    assert (env.get("NCCL_NET"), env.get("NCCL_NET_PLUGIN")) == (net, plugin)


ALT_READ = {"FI_CXI_RDZV_PROTO": "alt_read"}


@pytest.mark.parametrize(
    ("site_keys", "job_env", "together"),
    [
        ({"network": {"fabric": "slingshot", "alt_read": True}}, {}, True),
        ({"network": {"fabric": "slingshot"}}, {}, False),
        (
            {"network": {"fabric": "slingshot", "alt_read": True}},
            {"FI_CXI_RDZV_PROTO": "default"},
            False,
        ),
        ({"env": ALT_READ}, {}, True),
        ({}, ALT_READ, True),
        ({"env_blocks": [{"env": ALT_READ}]}, {}, True),
        ({"env_blocks": [{"env": ALT_READ, "already_set_by": "a module"}]}, {}, True),
        ({"env": ALT_READ, "env_blocks": [{"env": {"FI_CXI_RDZV_PROTO": ""}}]}, {}, False),
    ],
)
def test_alt_read_and_its_option_come_together(
    job: Jobs, slurm: Sites, site_keys: dict[str, Any], job_env: dict[str, str], together: bool
) -> None:
    plan = make_plan(job({"nodes": 2, "gpus_per_node": 4}, env=job_env), slurm(**site_keys))
    assert (dict(plan.directives).get("network") == "disable_rdzv_get") == together
    companions = [name for name in dict(plan.env) if name.startswith("FI_CXI_RDZV_")]
    assert together or companions in ([], ["FI_CXI_RDZV_PROTO"])


TABLE = yaml.safe_load((Path(__file__).parent / "network_variables.yaml").read_bytes())


@pytest.mark.parametrize("row", TABLE.values(), ids=list(TABLE))
def test_the_fabric_gives_these_variables_and_no_other(
    planned: Callable[..., LaunchPlan], row: dict[str, Any]
) -> None:
    plan = planned(row["network"], row["nodes"], row["gpus"], row["launcher"])
    assert {name: value for name, value in plan.env if name not in ALWAYS} == row["env"]
    assert plan.changes == ()
    for name in row["env"]:
        setting = plan.settings[f"env.{name}"]
        assert setting.why and setting.source
        assert setting.origin in ("rule", "big.yaml")
