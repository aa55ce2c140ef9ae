"""Sites with a network: what is set in their jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpc_train.base.decode import decode
from hpc_train.base.errors import SpecError
from hpc_train.jobs.job import JobSpec
from hpc_train.plans.build import make_plan
from hpc_train.plans.plan import LaunchPlan
from hpc_train.sites.load import load_site

PROFILES = Path(__file__).parents[1] / "sites/profiles"


def plan_of(name: str, nodes: int, **keys: Any) -> LaunchPlan:
    resources = {"nodes": nodes, "gpus_per_node": 0 if "partition" in keys else 4}
    data = {"name": "j", "command": ["true"], "account": "a", "resources": resources, **keys}
    job = decode(data, JobSpec, {"": "job.yaml"}, SpecError)
    return make_plan(job, load_site(str(PROFILES / f"{name}.yaml")))


def test_a_module_that_chooses_the_protocol_brings_the_option() -> None:
    plan = plan_of("slingshot-amd", 2)
    assert dict(plan.directives)["network"] == "disable_rdzv_get"
    env = dict(plan.env)
    assert not env.keys() & {"FI_CXI_RDZV_PROTO", "FI_MR_CACHE_MONITOR"}
    assert env["HSA_FORCE_FINE_GRAIN_PCIE"] == "1"
    assert [(c.name, c.scope) for c in plan.changes] == [
        ("MIOPEN_USER_DB_PATH", "ranks"),
        ("MIOPEN_CUSTOM_CACHE_DIR", "ranks"),
    ]
    alone = plan_of("slingshot-amd", 1)
    assert dict(alone.env)["NCCL_NET"] == "Socket"
    assert "network" not in dict(alone.directives)
