"""Plans to render, made of a job as people write it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hpc_train.decode import decode
from hpc_train.errors import SpecError
from hpc_train.model.job import JobSpec
from hpc_train.model.plan import LaunchPlan
from hpc_train.plans.build import make_plan
from hpc_train.sites.load import load_site
from hpc_train.sites.machine import Machine


@pytest.fixture(scope="session")
def plan() -> Callable[..., LaunchPlan]:
    def make(site: str = "local", **keys: Any) -> LaunchPlan:
        data = {"name": "demo", "command": ["python", "train.py"], **keys}
        job = decode(data, JobSpec, {"": "job.yaml"}, SpecError)
        return make_plan(job, load_site(site, Machine(cpus=8, gpus=0)))

    return make
