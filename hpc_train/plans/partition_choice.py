"""The partition of a job: the one that it names, the site's, or the first one that fits.

A job that exceeds a limit of its queue is refused, with the partitions and the qualities of service
that would accept it.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from hpc_train.base.errors import PlanError, UnknownNameError
from hpc_train.jobs.job import Topology
from hpc_train.plans.context import Context, asked_at, from_job, show, with_key
from hpc_train.plans.node_and_rank_counts import resolve_topology
from hpc_train.plans.plan import Setting
from hpc_train.plans.queue_limits import SizeName, limits_on
from hpc_train.sites.partition import ANY


def choose_partition(context: Context) -> tuple[Context, Setting | None]:
    """Return the job on its partition, and the origin of the choice; None: the cluster's default.

    Raises:
        UnknownNameError: the site lists partitions and the job's is not among them.
        PlanError: no partition accepts it.
    """
    job, site = context.job, context.site
    if job.value.partition is not None:
        _check_name(context, "partition", [one.name for one in site.value.partitions])
        return context, from_job(job, "partition")
    if site.value.partition_choice == "fitting":
        index, why = _first_fitting(context), "the first of the site's that the job fits"
    elif context.queue.partition is None or context.partition.name == ANY:
        return context, None
    else:
        index, why = context.queue.partition[0], "the site's default"
        if job.value.resources.gpus_per_node == 0 and context.partition.gpus_per_node:
            without = (i for i, other in _fitting(context) if other.partition.gpus_per_node == 0)
            if (first := next(without, None)) is not None:
                index, why = first, "the first of the site's without GPUs"
    name, origin = site.value.partitions[index].name, site.origin(f"partitions.{index}.name")
    return with_key(context, "partition", name, origin), Setting(value=name, origin=origin, why=why)


def check_limits(context: Context, topology: Topology) -> tuple[str, ...]:
    """Compare a job with the limits of its queue in the profile; return the warnings.

    Raises:
        UnknownNameError: the site lists qualities of service and the job's is not among them.
        PlanError: the job is outside the limits of the partition or the qos.
    """
    site = context.site.value
    _check_name(context, "qos", [qos.name for qos in site.qos])
    # A partition and the nodes of its profile may have one limit.
    found: dict[tuple[str, str], LimitViolation] = {}
    for one in violations(context):
        found.setdefault((one.asked, one.limit), one)
    if found:
        first, *more = found.values()
        place = asked_at(context.job, first.key)
        sentences = (f"{place}{first.clause(site.name)}", *(one.clause() for one in more))
        now = context.queue.qos[1].name if context.queue.qos else None
        others = [qos.name for qos in site.qos if qos.name not in (now, ANY)]
        fits = [name for name in others if not any(violations(with_key(context, "qos", name)))]
        of_qos = f"fits: qos {', '.join(fits)} (--qos NAME)" if fits else ""
        hints = filter(None, (of_qos, _elsewhere(context)))
        raise PlanError("; ".join(sentences), "; or ".join(hints))
    if not context.batch.this_machine:
        return ()
    return tuple(
        f"{crowd.asked}, but {site.name} {crowd.who} {crowd.limit}: the ranks will "
        "share cores, so times are not reliable"
        for crowd in core_violations(context, topology)
    )


def _candidates(context: Context) -> list[tuple[int, Context]]:
    """Return the job on each of the partitions that have a name."""
    near, names = context.site.near, [one.name for one in context.site.value.partitions]
    return [
        (index, with_key(context, "partition", name, near(f"partitions.{index}.name")))
        for index, name in enumerate(names)
        if name != ANY
    ]


def _fitting(context: Context) -> list[tuple[int, Context]]:
    """Return the candidates that would accept the job."""
    return [(index, other) for index, other in _candidates(context) if not any(violations(other))]


def _first_fitting(context: Context) -> int:
    for index, _ in _fitting(context):
        return index
    reasons = [
        f"{other.partition.name}: {next(iter(violations(other))).clause()}"
        for _, other in _candidates(context)
    ]
    without_gpus = any("GPUs of all nodes = 0" in reason for reason in reasons)
    raise PlanError(
        f"{asked_at(context.job, 'resources')}no partition of {context.site.value.name} accepts "
        "this job: " + "; ".join(reasons),
        "set resources.gpus_per_node (--gpus-per-node N), or request less"
        if without_gpus
        else "request less, or name a partition",
    )


def _check_name(context: Context, key: str, names: Sequence[str]) -> None:
    """Refuse a partition or a qos that is not among those of the site, if it lists them."""
    site, name = context.site.value, getattr(context.job.value, key)
    if name is not None and names and name not in names and ANY not in names:
        place, what = context.job.origin(key), f"{key} of {site.name}"
        raise UnknownNameError(what, name, names, place, show(context.site))


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


class LimitViolation(NamedTuple):
    """A request of the job at `key` that exceeds a limit of `who`, which is at `place`."""

    key: str
    asked: str
    who: str
    limit: str
    place: str

    def clause(self, site: str = "") -> str:
        """Return `nodes = 9, but p has at most 4 (big.yaml:7)`, with the site before `p`."""
        where = f" ({self.place})" if self.place else ""
        who = f"{site} {self.who}" if site else self.who
        return f"{self.asked}, but {who} {self.limit}{where}"


def violations(context: Context) -> Iterator[LimitViolation]:
    """Yield the violated limits of the partition and the qos of a job."""
    topology, _ = resolve_topology(context)
    queue, name = context.queue, context.partition.name
    if queue.qos is not None and queue.partition is not None:
        index, qos = queue.qos
        if qos.partitions and name not in qos.partitions:
            limit = f"is for {', '.join(qos.partitions)}"
            place = context.site.near(f"qos.{index}.partitions")
            yield LimitViolation("qos", f"partition = {name}", f"qos {qos.name}", limit, place)
    yield from _sizes(context, topology)
    yield from _on_a_node(context, topology)
    if not context.batch.this_machine:
        for violation in core_violations(context, topology):
            # On whole nodes, no share is reserved for other jobs.
            shared = not context.job.value.resources.exclusive
            if shared or violation.key != "resources.cpus_per_task":
                yield violation


def _sizes(context: Context, topology: Topology) -> Iterator[LimitViolation]:
    gpus, time = topology.nodes * topology.gpus_per_node, context.job.value.resources.time
    sizes: tuple[tuple[SizeName, str, str, Any], ...] = (
        ("nodes", "resources.nodes", "nodes", topology.nodes),
        ("gpus", "resources.gpus_per_node", "GPUs of all nodes", gpus),
        ("time", "resources.time", "time", time),
    )
    for size, key, word, wanted in sizes:
        if wanted is None:
            continue
        asked, least = f"{word} = {wanted}", getattr(context.partition, f"min_{size}")
        for most in limits_on(size, context.queue, topology.nodes):
            if wanted > most.value:
                limit = f"has at most {most.value}{f' {most.note}' if most.note else ''}"
                yield LimitViolation(key, asked, most.who, limit, context.site.near(most.key))
        if least is not None and wanted < least:
            limit, place = f"needs at least {least}", context.near(f"min_{size}")
            yield LimitViolation(key, asked, context.partition.name, limit, place)


def _on_a_node(context: Context, topology: Topology) -> Iterator[LimitViolation]:
    partition, memory = context.partition, context.job.value.resources.mem
    for key, fact, wanted, there in (
        ("gpus_per_node", "gpus_per_node", topology.gpus_per_node, partition.gpus_per_node),
        ("mem", "mem_per_node", memory, partition.mem_per_node),
    ):
        if wanted is not None and there is not None and wanted > there:
            asked, limit = f"{key} = {wanted}", f"has at most {there}"
            place = context.near(fact)
            yield LimitViolation(f"resources.{key}", asked, partition.name, limit, place)


def core_violations(context: Context, topology: Topology) -> Iterator[LimitViolation]:
    """Yield a violation if a job needs more cores than its node or its GPUs provide."""
    partition = context.partition
    if topology.cpus_per_task is None:
        return
    resources, tasks = context.job.value.resources, topology.tasks_per_node
    wanted = tasks * topology.cpus_per_task
    there, each = partition.cpus_per_node, partition.cpus_per_gpu
    rule, share = partition.cpu_rule, (each or 0) * topology.gpus_per_node
    if there is not None and wanted > there:
        reserved = partition.reserved_cpus
        limit = (
            f"has {there} cores{f'; {reserved} more of a node are reserved' if reserved else ''}"
        )
        # The key that the job states, if it states only one.
        only_cores = resources.tasks_per_node is None and resources.cpus_per_task is not None
        key, fact = "cpus_per_task" if only_cores else "tasks_per_node", "cpus_per_node"
    elif share and (wanted > share if rule == "max" else rule == "exact" and wanted != share):
        word = "at most" if rule == "max" else "exactly"
        gpus = f"{topology.gpus_per_node} GPU{'s' if topology.gpus_per_node > 1 else ''}"
        limit = f"gives {word} {share} with {gpus} ({each} each)"
        key, fact = "cpus_per_task", "cpus_per_gpu"
    else:
        return
    asked = f"{tasks} tasks x {topology.cpus_per_task} cpus = {wanted}"
    place = context.near(fact)
    yield LimitViolation(f"resources.{key}", asked, partition.name, limit, place)
