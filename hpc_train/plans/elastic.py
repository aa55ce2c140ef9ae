"""Elastic jobs: between how many nodes torchrun may go on after a failure."""

from __future__ import annotations

from hpc_train.errors import PlanError
from hpc_train.model.job import Elastic
from hpc_train.model.plan import Setting
from hpc_train.plans.context import Job


def resolve_elastic(job: Job) -> Elastic | None:
    """Return the bounds with nothing left open; None for a job that is not elastic.

    Raises:
        PlanError: bounds that the job's nodes do not hold.
    """
    wanted = job.value.elastic
    if wanted is None:
        return None
    nodes = job.value.resources.nodes
    most = wanted.max_nodes or nodes
    fewest = wanted.min_nodes or most
    if not fewest <= most <= nodes:
        raise PlanError(
            f"{job.near('elastic')}: elastic wants min_nodes <= max_nodes <= the job's nodes, "
            f"not {fewest}, {most}, {nodes}"
        )
    return Elastic(min_nodes=fewest, max_nodes=most, max_restarts=wanted.max_restarts)


def elastic_settings(job: Job) -> dict[str, Setting]:
    """Return the bounds as `explain` shows them."""
    found = resolve_elastic(job)
    if found is None:
        return {}
    return {
        f"elastic.{key}": Setting(value=getattr(found, key), origin=job.near(f"elastic.{key}"))
        for key in ("min_nodes", "max_nodes", "max_restarts")
    }


def check_elastic(job: Job, launcher: str) -> None:
    """Refuse an elastic job under a launcher whose ranks all end with the first one.

    Raises:
        PlanError: with the launcher that will do.
    """
    if job.value.elastic and launcher != "torchrun":
        raise PlanError(
            f"{job.near('elastic')}: elastic needs the launcher torchrun, not {launcher}",
            "--launcher torchrun, or leave elastic out",
        )


def elastic_directives(elastic: Elastic | None, nodes: int) -> tuple[tuple[str, str], ...]:
    """Keep the job when Slurm loses one of its nodes, where fewer will do."""
    spare = elastic is not None and (elastic.min_nodes or nodes) < nodes
    return (("no-kill", ""),) if spare else ()
