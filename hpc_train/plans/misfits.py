"""What of a job its queue does not take: one sentence for each, in the order of a job's keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hpc_train.model.partition import Partition
from hpc_train.model.plan import Topology
from hpc_train.model.units import Memory
from hpc_train.model.value import Value
from hpc_train.plans.ceilings import ceilings
from hpc_train.plans.context import Job, Site, asked_at
from hpc_train.plans.queue_options import Queue, queue_of
from hpc_train.plans.topology import resolve_topology

_KEYS = {"nodes": "nodes", "gpus": "gpus_per_node", "time": "time"}
_WORDS = {"nodes": "nodes", "gpus": "GPUs of all nodes", "time": "time"}


class Misfit(Value, frozen=True, kw_only=True):
    """`asked` by the job at `key`, against the `limit` of `who`, which stands at `place`."""

    key: str
    asked: str
    who: str
    limit: str
    place: str

    def said(self, job: Job, site: Site) -> str:
        """Return the sentence that refuses the job."""
        start, where = asked_at(job, self.key), f" ({self.place})" if self.place else ""
        return f"{start}{self.asked}, but {site.value.name} {self.who} {self.limit}{where}"


def misfits(job: Job, site: Site) -> Iterator[Misfit]:
    """Yield what does not fit the partition and the qos of a job."""
    queue = queue_of(job, site)
    topology, _ = resolve_topology(job, site)
    yield from _other_qos(queue, site)
    for name, wanted in _sizes(job, topology).items():
        if wanted is not None:
            yield from _beyond(name, wanted, queue, site, topology.nodes)
    if queue.partition is not None:
        yield from _beyond_node(job, site, topology, queue.partition)
        if site.value.scheduler != "local":
            for misfit in cores(site, topology, queue.partition):
                # With whole nodes, there is nobody to leave a share to.
                if not (misfit.key == "resources.cpus_per_task" and job.value.resources.exclusive):
                    yield misfit


def cores(site: Site, topology: Topology, found: tuple[int, Partition]) -> Iterator[Misfit]:
    """Yield more cores than a node has, or than go with the GPUs."""
    index, partition = found
    wanted = topology.tasks_per_node * topology.cpus_per_task
    asked = f"{topology.tasks_per_node} tasks x {topology.cpus_per_task} cpus = {wanted}"
    there, each = partition.cpus_per_node, partition.cpus_per_gpu
    rule = partition.cpu_rule
    share = (each or 0) * topology.gpus_per_node
    limit, key = "", ""
    if there is not None and wanted > there:
        reserved = partition.reserved_cpus
        more = f"; {reserved} more of a node are reserved" if reserved else ""
        limit, key = f"has {there} cores{more}", "cpus_per_node"
    elif share and (wanted > share if rule == "max" else rule == "exact" and wanted != share):
        word = "at most" if rule == "max" else "exactly"
        gpus = f"{topology.gpus_per_node} GPU{'s' if topology.gpus_per_node > 1 else ''}"
        limit, key = f"gives {word} {share} with {gpus} ({each} each)", "cpus_per_gpu"
    if limit:
        place = site.near(f"partitions.{index}.{key}")
        yield Misfit(
            key="resources.cpus_per_task" if key == "cpus_per_gpu" else "resources.tasks_per_node",
            asked=asked,
            who=partition.name,
            limit=limit,
            place=place,
        )


def _other_qos(queue: Queue, site: Site) -> Iterator[Misfit]:
    if queue.qos is None or queue.partition is None:
        return
    index, qos = queue.qos
    if qos.partitions and queue.partition[1].name not in qos.partitions:
        yield Misfit(
            key="qos",
            asked=f"partition = {queue.partition[1].name}",
            who=f"qos {qos.name}",
            limit=f"is for {', '.join(qos.partitions)}",
            place=site.near(f"qos.{index}.partitions"),
        )


def _sizes(job: Job, topology: Topology) -> dict[str, Any]:
    return {
        "nodes": topology.nodes,
        "gpus": topology.nodes * topology.gpus_per_node,
        "time": job.value.resources.time,
    }


def _beyond(name: str, wanted: Any, queue: Queue, site: Site, nodes: int) -> Iterator[Misfit]:
    key, asked = f"resources.{_KEYS[name]}", f"{_WORDS[name]} = {wanted}"
    for found in ceilings(name, queue, site, nodes):
        if wanted > found.value:
            note = f" {found.note}" if found.note else ""
            limit = f"has at most {found.value}{note}"
            yield Misfit(key=key, asked=asked, who=found.who, limit=limit, place=found.place)
    if queue.partition is None:
        return
    index, partition = queue.partition
    least = getattr(partition, f"min_{name}")
    if least is not None and wanted < least:
        place = site.near(f"partitions.{index}.min_{name}")
        limit = f"wants at least {least}"
        yield Misfit(key=key, asked=asked, who=partition.name, limit=limit, place=place)


def _beyond_node(
    job: Job, site: Site, topology: Topology, found: tuple[int, Partition]
) -> Iterator[Misfit]:
    index, partition = found
    shares = {
        "gpus_per_node": (topology.gpus_per_node, "gpus_per_node", partition.gpus_per_node),
        "mem": (job.value.resources.mem, "mem_per_node", partition.mem_per_node),
    }
    for key, (wanted, fact, there) in shares.items():
        if wanted is not None and there is not None and wanted > there:
            limit = f"has at most {Memory(there) if key == 'mem' else there}"
            yield Misfit(
                key=f"resources.{key}",
                asked=f"{key} = {wanted}",
                who=partition.name,
                limit=limit,
                place=site.near(f"partitions.{index}.{fact}"),
            )
