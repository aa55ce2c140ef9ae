"""The partition of a job: the one that it names, the site's, or the first one that fits.

A job that exceeds a limit of its queue is refused, with the partitions and the qualities of service
that would accept it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from hpc_train.base.errors import PlanError, UnknownNameError, nearest
from hpc_train.base.units import Memory
from hpc_train.base.value import Value
from hpc_train.jobs.job import Topology
from hpc_train.plans.context import Context, asked_at, from_job, on_partition, with_qos
from hpc_train.plans.node_and_rank_counts import resolve_topology
from hpc_train.plans.plan import Setting
from hpc_train.plans.queue_limits import SizeName, limits_on
from hpc_train.sites.partition import ANY


class Choice(NamedTuple):
    """The context of a job on a partition, and the origin of the choice; None: the cluster's
    default."""

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
    # A partition and the nodes of its profile may have one limit.
    found = [*{(one.asked, one.limit): one for one in reversed([*violations(context)])}.values()]
    if found:
        found.reverse()
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


# SizeName -> the job's key, and its name in messages.
_SIZES: dict[SizeName, tuple[str, str]] = {
    "nodes": ("nodes", "nodes"),
    "gpus": ("gpus_per_node", "GPUs of all nodes"),
    "time": ("time", "time"),
}


class LimitViolation(Value, frozen=True, kw_only=True):
    """A request of the job at `key` that exceeds a limit of `who`, which is at `place`."""

    key: str
    asked: str
    who: str
    limit: str
    place: str

    @property
    def clause(self) -> str:
        """Return `nodes = 9, but p has at most 4 (big.yaml:7)`."""
        where = f" ({self.place})" if self.place else ""
        return f"{self.asked}, but {self.who} {self.limit}{where}"

    def sentence(self, context: Context) -> str:
        """Return the sentence that refuses the job."""
        site = context.site.value.name
        where = f" ({self.place})" if self.place else ""
        start = asked_at(context.job, self.key)
        return f"{start}{self.asked}, but {site} {self.who} {self.limit}{where}"


def violations(context: Context) -> Iterator[LimitViolation]:
    """Yield the violated limits of the partition and the qos of a job."""
    topology, _ = resolve_topology(context)
    yield from _foreign_qos(context)
    for size, wanted in _sizes(context, topology).items():
        if wanted is not None:
            yield from _above(size, wanted, context, topology.nodes)
            yield from _below(size, wanted, context)
    yield from _on_a_node(context, topology)
    if not context.batch.this_machine:
        for violation in core_violations(context, topology):
            # On whole nodes, no share is reserved for other jobs.
            shared = not context.job.value.resources.exclusive
            if shared or violation.key != "resources.cpus_per_task":
                yield violation


def core_violations(context: Context, topology: Topology) -> Iterator[LimitViolation]:
    """Yield a violation if a job needs more cores than its node or its GPUs provide."""
    partition = context.partition
    if topology.cpus_per_task is None:
        return
    wanted = topology.tasks_per_node * topology.cpus_per_task
    there, each = partition.cpus_per_node, partition.cpus_per_gpu
    rule, share = partition.cpu_rule, (each or 0) * topology.gpus_per_node
    if there is not None and wanted > there:
        reserved = partition.reserved_cpus
        more = f"; {reserved} more of a node are reserved" if reserved else ""
        limit, key, asked_by = f"has {there} cores{more}", "cpus_per_node", _asked_by(context)
    elif share and (wanted > share if rule == "max" else rule == "exact" and wanted != share):
        word = "at most" if rule == "max" else "exactly"
        gpus = f"{topology.gpus_per_node} GPU{'s' if topology.gpus_per_node > 1 else ''}"
        limit = f"gives {word} {share} with {gpus} ({each} each)"
        key, asked_by = "cpus_per_gpu", "cpus_per_task"
    else:
        return
    yield LimitViolation(
        key=f"resources.{asked_by}",
        asked=f"{topology.tasks_per_node} tasks x {topology.cpus_per_task} cpus = {wanted}",
        who=partition.name,
        limit=limit,
        place=context.near(key),
    )


def _asked_by(context: Context) -> str:
    """Return the key that a job states, if it states only one."""
    asked = context.job.value.resources
    only_cores = asked.tasks_per_node is None and asked.cpus_per_task is not None
    return "cpus_per_task" if only_cores else "tasks_per_node"


def _foreign_qos(context: Context) -> Iterator[LimitViolation]:
    """A qos may be restricted to some partitions."""
    queue = context.queue
    if queue.qos is None or queue.partition is None:
        return
    index, qos = queue.qos
    if qos.partitions and context.partition.name not in qos.partitions:
        yield LimitViolation(
            key="qos",
            asked=f"partition = {context.partition.name}",
            who=f"qos {qos.name}",
            limit=f"is for {', '.join(qos.partitions)}",
            place=context.site.near(f"qos.{index}.partitions"),
        )


def _sizes(context: Context, topology: Topology) -> dict[SizeName, Any]:
    return {
        "nodes": topology.nodes,
        "gpus": topology.nodes * topology.gpus_per_node,
        "time": context.job.value.resources.time,
    }


def _above(size: SizeName, wanted: Any, context: Context, nodes: int) -> Iterator[LimitViolation]:
    key, word = _SIZES[size]
    for limit in limits_on(size, context.queue, nodes):
        if wanted > limit.value:
            note = f" {limit.note}" if limit.note else ""
            yield LimitViolation(
                key=f"resources.{key}",
                asked=f"{word} = {wanted}",
                who=limit.who,
                limit=f"has at most {limit.value}{note}",
                place=context.site.near(limit.key),
            )


def _below(size: SizeName, wanted: Any, context: Context) -> Iterator[LimitViolation]:
    key, word = _SIZES[size]
    least = getattr(context.partition, f"min_{size}")
    if least is not None and wanted < least:
        yield LimitViolation(
            key=f"resources.{key}",
            asked=f"{word} = {wanted}",
            who=context.partition.name,
            limit=f"wants at least {least}",
            place=context.near(f"min_{size}"),
        )


def _on_a_node(context: Context, topology: Topology) -> Iterator[LimitViolation]:
    partition, memory = context.partition, context.job.value.resources.mem
    shares = {
        "gpus_per_node": (topology.gpus_per_node, "gpus_per_node", partition.gpus_per_node),
        "mem": (memory, "mem_per_node", partition.mem_per_node),
    }
    for key, (wanted, fact, there) in shares.items():
        if wanted is not None and there is not None and wanted > there:
            yield LimitViolation(
                key=f"resources.{key}",
                asked=f"{key} = {wanted}",
                who=partition.name,
                limit=f"has at most {Memory(there) if key == 'mem' else there}",
                place=context.near(fact),
            )
