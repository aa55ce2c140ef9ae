"""The limits of its queue that a job violates, in the order of the job's keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hpc_train.model.plan import Topology
from hpc_train.model.queue_limits import SizeName, limits_on
from hpc_train.model.units import Memory
from hpc_train.model.value import Value
from hpc_train.plans.context import Context, asked_at
from hpc_train.plans.node_and_rank_counts import resolve_topology

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
