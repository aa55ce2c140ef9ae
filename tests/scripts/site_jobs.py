"""Sample jobs of a site, with what the tests of scripts add to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from hpc_train.base.errors import PlanError
from hpc_train.jobs.job import Container, SourcedJob
from hpc_train.plans.build import make_plan
from hpc_train.plans.sample_jobs import sample_jobs
from hpc_train.sites.profile import SourcedSite

IMAGE = "/images/torch.sif"


def changed(job: SourcedJob, **keys: Any) -> SourcedJob:
    """Return a job with other values."""
    value = msgspec.structs.replace(job.value, **keys)
    return msgspec.structs.replace(job, value=value)


def images(profile: SourcedSite) -> Iterator[SourcedJob]:
    """Yield the sample jobs with an image, for the launchers that can open it; maybe none."""
    if profile.value.containers is None:
        return
    for job in sample_jobs(profile.value):
        boxed = changed(job, container=Container(image=IMAGE))
        try:
            make_plan(boxed, profile)
        except PlanError as refused:
            # The only reason: Slurm opens the image, and the launcher does not start srun.
            assert "opens images through srun" in str(refused)
            continue
        yield boxed
