"""A manifest to store."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hpc_train.base.decode import decode
from hpc_train.base.errors import SpecError
from hpc_train.jobs.job import JobSpec
from hpc_train.plans.build import make_plan
from hpc_train.runs.run import MANIFEST_SCHEMA, Manifest, Script
from hpc_train.sites.load import Machine, load_site

Entry = tuple[Manifest, Script]


@pytest.fixture
def entry() -> Callable[[str], Entry]:
    data = {"name": "j", "command": ["true"], "resources": {"time": "1h", "mem": "4G"}}
    job = decode(data, JobSpec, {"": "job.yaml"}, SpecError)
    plan = make_plan(job, load_site("local", Machine(cpus=2, gpus=0)))

    def make(run_id: str) -> Entry:
        manifest = Manifest(
            schema=MANIFEST_SCHEMA,
            run_id=run_id,
            name="j",
            study=None,
            axes={"tasks_per_node": 2},
            repetition=1,
            attempt=1,
            created="2026-11-01T00:00:00+00:00",
            spec=job.value,
            plan=plan,
            script_digest="d",
            template_digest="t",
            provenance={"host": "h"},
        )
        return manifest, Script(text="#!/bin/bash\n", digest="d", template_digest="t")

    return make
