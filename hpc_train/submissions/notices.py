"""Notices on variables of the user's environment that a submission removes."""

from __future__ import annotations

import os

from hpc_train.model.plan import LaunchPlan
from hpc_train.model.site import SiteProfile
from hpc_train.model.value import Sourced
from hpc_train.submissions.slurm import sbatch_environment as environment


def notices(site: Sourced[SiteProfile], plan: LaunchPlan) -> tuple[str, ...]:
    """Return the notices before a job is submitted to a scheduler."""
    if site.value.scheduler == "local":
        return ()
    return environment.notices(os.environ, [name for name, _ in plan.directives])
