"""A study with `placement: nested` -> the script of the allocation that its runs share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from hpc_train.errors import PlanError
from hpc_train.model.plan import LaunchPlan
from hpc_train.model.run import RunName
from hpc_train.model.study import Study
from hpc_train.model.submission import Script
from hpc_train.pipeline.prepared import PreparedPoint, PreparedSite
from hpc_train.plans.shared_allocation import allocate
from hpc_train.scripts.render import render_allocation

_Run = tuple[str, LaunchPlan]
Order = Callable[[Sequence[Sequence[_Run]], int], list[_Run]]


def check_nested(path: Path, sites: Sequence[PreparedSite]) -> None:
    """Refuse sites that cannot give one allocation to all runs.

    Raises:
        PlanError: several sites, or one that is this machine.
    """
    if len(sites) > 1:
        raise PlanError(
            f"{path}: placement nested needs one allocation, but the study has {len(sites)} sites",
            "remove placement: independent is the default",
        )
    if sites[0].batch.this_machine:
        raise PlanError(
            f"{path}: placement nested needs one allocation of several nodes, "
            f"which {sites[0].name} cannot give",
            "remove placement: independent is the default",
        )


def allocation_of(
    study: Study, points: Sequence[PreparedPoint], in_order: Order
) -> tuple[Script, tuple[str, ...]]:
    """Return the script of the allocation, and its warnings.

    `in_order` puts the runs of all repetitions into their order, by the seed of the study.
    """
    site = points[0].place
    repetitions = [
        [(str(RunName(stem=point.stem, repetition=number)), point.plan) for point in points]
        for number in range(1, study.spec.repetitions + 1)
    ]
    allocation = allocate(site.site, in_order(repetitions, study.spec.seed), study.spec.name)
    return render_allocation(allocation, site.folders), allocation.warnings
