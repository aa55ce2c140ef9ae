"""A small job and two sites, changed by each test where it matters."""

from collections.abc import Callable
from typing import Any

import pytest

from hpc_train.base.decode import decode
from hpc_train.base.errors import SiteProfileError, SpecError
from hpc_train.base.values import Sourced
from hpc_train.jobs.job import JobSpec
from hpc_train.plans.build import make_plan
from hpc_train.plans.plan import LaunchPlan
from hpc_train.sites.load import Machine, load_site
from hpc_train.sites.profile import SiteProfile

Job = Sourced[JobSpec]
Site = Sourced[SiteProfile]
Jobs = Callable[..., Job]
Sites = Callable[..., Site]


@pytest.fixture
def job() -> Jobs:
    def make(resources: dict[str, Any] | None = None, **keys: Any) -> Job:
        data = {"name": "j", "command": ["python", "t.py"], "resources": resources or {}, **keys}
        origins = {"": "job.yaml", **{key: "job.yaml:1" for key in data}}
        origins |= {f"resources.{key}": "job.yaml:9" for key in data["resources"]}
        origins |= {f"env.{key}": "job.yaml:8" for key in keys.get("env", {})}
        return decode(data, JobSpec, origins, SpecError)

    return make


@pytest.fixture
def local() -> Site:
    return load_site("local", Machine(cpus=8, gpus=0))


@pytest.fixture
def slurm() -> Sites:
    def make(**keys: Any) -> Site:
        data = {
            "schema": 1,
            "name": "big",
            "description": "d",
            "scheduler": "slurm",
            "partitions": [{"name": "*", "cpus_per_gpu": 1}],
            "launchers": {
                "default": "srun",
                "allowed": ["srun", "torchrun", "mpirun", "spawn", "single"],
            },
            **keys,
        }
        return decode(data, SiteProfile, {"": "big.yaml"}, SiteProfileError)

    return make


@pytest.fixture
def planned(
    job: Jobs, slurm: Sites
) -> Callable[[dict[str, Any] | None, int, int, str], LaunchPlan]:
    def make(network: dict[str, Any] | None, nodes: int, gpus: int, launcher: str) -> LaunchPlan:
        size = {"nodes": nodes, "gpus_per_node": gpus, "cpus_per_task": 8}
        wanted = job(size, launcher=launcher)
        return make_plan(wanted, slurm(network=network))

    return make
