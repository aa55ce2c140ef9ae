"""The rendezvous of the ranks: host and ports, and the node limits of an elastic job."""

from __future__ import annotations

from hpc_train.base.errors import PlanError
from hpc_train.jobs.job import Elastic, SourcedJob
from hpc_train.plans.context import Context
from hpc_train.plans.other_launchers import other_launchers
from hpc_train.plans.plan import Setting
from hpc_train.sites.profile import SourcedSite


def rendezvous_settings(site: SourcedSite) -> dict[str, Setting]:
    """Return the host and the port, with their reasons."""
    meeting = site.value.rendezvous
    free = f"first free one of {meeting.ports}, tried on rank 0's host when the job starts"
    host = Setting(value=meeting.host + meeting.suffix, origin=site.origin("rendezvous.host"))
    port = Setting(value=meeting.port, origin=site.origin("rendezvous.port"), why=free)
    return {"rendezvous.host": host, "rendezvous.port": port}


def resolve_elastic(job: SourcedJob) -> Elastic | None:
    """Return the complete bounds; None for a job that is not elastic.

    Raises:
        PlanError: the bounds contradict the job's number of nodes.
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


def elastic_settings(job: SourcedJob, elastic: Elastic | None) -> dict[str, Setting]:
    """Return the bounds as `explain` shows them."""
    if elastic is None:
        return {}
    return {
        f"elastic.{key}": Setting(value=getattr(elastic, key), origin=job.near(f"elastic.{key}"))
        for key in ("min_nodes", "max_nodes", "max_restarts")
    }


def check_elastic(context: Context) -> None:
    """Refuse an elastic job under a launcher whose ranks all end with the first one.

    Raises:
        PlanError: with the launchers of the site that support it.
    """
    job, launcher = context.job, context.launcher
    if not job.value.elastic:
        return
    instead = context.batch.instead.get("elastic")
    # Before the launcher: no other one helps.
    if job.value.resources.nodes > 1 and instead:
        raise PlanError(
            f"{job.near('elastic')}: the job cannot be elastic on several nodes of "
            f"{context.site.value.name}: {instead}",
            "leave elastic out, or nodes: 1",
        )
    if not launcher.elastic:
        raise PlanError(
            f"{job.near('elastic')}: the job cannot be elastic: all ranks of the launcher "
            f"{launcher.name} end with the first one",
            f"{other_launchers(context)}, or leave elastic out",
        )


def elastic_directives(elastic: Elastic | None, nodes: int) -> tuple[tuple[str, str], ...]:
    """Keep the job after the loss of a node, if it can continue with fewer nodes."""
    spare = elastic is not None and (elastic.min_nodes or nodes) < nodes
    return (("no-kill", ""),) if spare else ()
