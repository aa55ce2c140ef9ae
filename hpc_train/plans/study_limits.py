"""Limits of a site for a study: runs, nodes and GPU-hours."""

from __future__ import annotations

from collections.abc import Sequence

from hpc_train.errors import PlanError
from hpc_train.model.plan import LaunchPlan
from hpc_train.model.site import SiteProfile
from hpc_train.model.study import Study
from hpc_train.model.value import Sourced
from hpc_train.plans.cost import cost_of


def check_study(study: Study, plans: Sequence[LaunchPlan], site: Sourced[SiteProfile]) -> None:
    """Check a study against the site's limits; `plans` are those of its points.

    Raises:
        PlanError: with the limit's place.
    """
    limits = site.value.limits
    runs = [plan for plan in plans for _ in range(study.spec.repetitions)]
    nodes = max((plan.topology.nodes for plan in plans), default=0)
    _check(site, "max_study_jobs", len(runs), f"{len(plans)} points x {study.spec.repetitions}")
    _check(site, "max_study_nodes", nodes, "the largest run")
    if limits.max_study_gpu_hours is None or not any(p.topology.gpus_per_node for p in plans):
        return
    cost = cost_of(runs)
    if cost.gpu_hours is None:
        raise PlanError(
            f"{site.near('limits.max_study_gpu_hours')}: {site.value.name} limits the GPU-hours "
            f"of a study, but this one is {cost}",
            "add `time:` to the job's resources, or --time 1h",
        )
    _check(site, "max_study_gpu_hours", cost.gpu_hours, "every run until its time limit")


def _check(site: Sourced[SiteProfile], key: str, wanted: float, what: str) -> None:
    most = getattr(site.value.limits, key)
    if most is not None and wanted > most:
        raise PlanError(
            f"{site.near(f'limits.{key}')}: {site.value.name} allows a study "
            f"{key.removeprefix('max_study_').replace('_', ' ')} = {most}, but this one has "
            f"{wanted:g} ({what})",
            "fewer repetitions or points, smaller or shorter runs",
        )
