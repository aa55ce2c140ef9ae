"""The partition of a job: the one that it names, the site's, or the first one that fits.

A job that exceeds a limit of its queue is refused, with the partitions and the qualities of service
that would accept it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hpc_train.errors import PlanError, UnknownNameError, nearest
from hpc_train.model.partition import ANY
from hpc_train.model.plan import Setting, Topology
from hpc_train.model.queue_limits import limits_on
from hpc_train.plans.context import Context, asked_at, from_job, on_partition, with_qos
from hpc_train.plans.limit_violations import core_violations, violations


class Choice(NamedTuple):
    """The context of a job on a partition, and the origin of the choice; None: the cluster's "
    "default."""

    context: Context
    partition: Setting | None


def choose_partition(context: Context) -> Choice:
    """Return the job on its partition.

    Raises:
        UnknownNameError: the site lists partitions and the job's is not among them.
        PlanError: no partition accepts it.
    """
    job, site = context.job, context.site
    if job.value.partition is not None:
        _check_name(context, job.value.partition)
        return Choice(context, from_job(job, "partition"))
    if site.value.partition_choice == "fitting":
        return _first_fitting(context)
    if context.queue.partition is None or context.partition.name == ANY:
        return Choice(context, None)
    return _chosen(context, context.queue.partition[0], "the site's default")


def check_limits(context: Context, topology: Topology) -> tuple[str, ...]:
    """Compare a job with the limits of its queue in the profile; return the warnings.

    Raises:
        UnknownNameError: the site lists qualities of service and the job's is not among them.
        PlanError: the job is outside the limits of the partition or the qos.
    """
    _check_qos(context)
    found = list(violations(context))
    if found:
        hints = (_other_qos(context), _elsewhere(context))
        sentences = (found[0].sentence(context), *(one.clause for one in found[1:]))
        raise PlanError("; ".join(sentences), "; or ".join(filter(None, hints)))
    if not context.batch.this_machine:
        return ()
    return tuple(
        f"{crowd.asked}, but {context.site.value.name} {crowd.who} {crowd.limit}: the ranks will "
        "share cores, so timings say little"
        for crowd in core_violations(context, topology)
    )


def _candidates(context: Context) -> list[tuple[int, Context]]:
    """Return the job on each of the partitions that have a name."""
    site = context.site
    return [
        (index, on_partition(context, partition.name, site.near(f"partitions.{index}.name")))
        for index, partition in enumerate(site.value.partitions)
        if partition.name != ANY
    ]


def _fitting(context: Context) -> list[tuple[int, Context]]:
    """Return the candidates that would accept the job."""
    return [(index, other) for index, other in _candidates(context) if not any(violations(other))]


def _chosen(context: Context, index: int, why: str) -> Choice:
    name = context.site.value.partitions[index].name
    origin = context.site.origin(f"partitions.{index}.name")
    setting = Setting(value=name, origin=origin, why=why)
    return Choice(on_partition(context, name, origin), setting)


def _first_fitting(context: Context) -> Choice:
    found = _fitting(context)
    if found:
        return _chosen(context, found[0][0], "the first of the site's that the job fits")
    reasons = [
        f"{other.partition.name}: {next(iter(violations(other))).clause}"
        for _, other in _candidates(context)
    ]
    raise PlanError(
        f"{asked_at(context.job, 'resources')}no partition of {context.site.value.name} takes "
        "this job: " + "; ".join(reasons),
        _advice(reasons),
    )


def _advice(reasons: list[str]) -> str:
    if all("GPUs of all nodes = 0" in reason or "wants at least" in reason for reason in reasons):
        return "ask for more: --gpus-per-node N, --nodes N"
    if any("GPUs of all nodes = 0" in reason for reason in reasons):
        return "name resources.gpus_per_node (--gpus-per-node N), or ask for less"
    return "ask for less, or name a partition"


def _check_name(context: Context, name: str) -> None:
    site = context.site.value
    names = [one.name for one in site.partitions]
    if names and name not in names and ANY not in names:
        place = context.job.origin("partition")
        shown = f"hpctrain site show {site.name}"
        raise UnknownNameError(f"partition of {site.name}", name, names, place, shown)


def partition_warnings(context: Context) -> Iterator[str]:
    """Warn of a partition that resembles one of a site whose list of partitions is open."""
    site, name = context.site.value, context.job.value.partition
    names = [one.name for one in site.partitions]
    if name is None or name in names or ANY not in names:
        return
    if near := nearest(name, [one for one in names if one != ANY]):
        place = asked_at(context.job, "partition")
        yield f"{place}the profile {site.name} has no partition {name!r}{near}"


def _check_qos(context: Context) -> None:
    site, name = context.site.value, context.job.value.qos
    names = [qos.name for qos in site.qos]
    if name is not None and names and name not in names and ANY not in names:
        place, shown = context.job.origin("qos"), f"hpctrain site show {site.name}"
        raise UnknownNameError(f"qos of {site.name}", name, names, place, shown)


def _other_qos(context: Context) -> str:
    """Return the qualities of service with which its partition would accept the job."""
    now = context.queue.qos[1].name if context.queue.qos else None
    others = [qos.name for qos in context.site.value.qos if qos.name not in (now, ANY)]
    found = [name for name in others if not any(violations(with_qos(context, name)))]
    return f"fits: qos {', '.join(found)} (--qos NAME)" if found else ""


def _elsewhere(context: Context) -> str:
    """Return the partitions that would accept the job, with their resources."""
    gpus = context.job.value.resources.gpus_per_node
    # A partition with unknown GPUs is not suggested.
    known = [o for _, o in _fitting(context) if not gpus or o.partition.gpus_per_node is not None]
    names = [f"{other.partition.name}{_given(other)}" for other in known]
    return f"fits: {', '.join(names)} (--partition NAME)" if names else ""


def _given(context: Context) -> str:
    nodes = context.job.value.resources.nodes
    most_nodes = min((one.value for one in limits_on("nodes", context.queue, nodes)), default=0)
    most_time = min((one.value for one in limits_on("time", context.queue, nodes)), default="")
    words = (f"{most_nodes} nodes" if most_nodes else "", str(most_time))
    shown = ", ".join(filter(None, words))
    return f" ({shown})" if shown else ""
