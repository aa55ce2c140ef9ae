"""The partition and the QOS that a job uses, and the limits that Slurm applies to it.

Slurm applies the limits of the partition and those of the quality of service (SchedMD, Resource
Limits). An entry is an index into the profile's list, and the partition or the qos itself.
"""

from collections.abc import Iterator
from typing import Any, Literal

from hpc_train.base.values import Duration, Value, within
from hpc_train.sites.partition import ANY, Partition, Qos
from hpc_train.sites.profile import SiteProfile

PartitionEntry = tuple[int, Partition]
QosEntry = tuple[int, Qos]
SizeName = Literal["nodes", "gpus", "time"]


class JobQueue(Value, frozen=True, kw_only=True):
    """The entries of the profile that limit a job."""

    partition: PartitionEntry | None
    qos: QosEntry | None


class Limit(Value, frozen=True, kw_only=True):
    """The maximum of a size, the partition or QOS that sets it, and the key of the profile."""

    value: Any
    who: str
    key: str
    note: str = ""


def partition_named(profile: SiteProfile, wanted: str | None) -> PartitionEntry | None:
    """Return the entry of a partition, or that of the site's default if `wanted` is None.

    The entry `*` matches any name, and the default of the cluster.
    """
    rest = None
    for index, partition in enumerate(profile.partitions):
        if partition.name == wanted or (wanted is None and partition.default):
            return index, partition
        if partition.name == ANY:
            rest = index, partition
    return rest if wanted is not None or profile.partition_choice == "default" else None


def qos_named(profile: SiteProfile, wanted: str | None, partition: str | None) -> QosEntry | None:
    """Return the entry of a QOS, or that of the partition's default if `wanted` is None."""
    rest = None
    for index, qos in enumerate(profile.qos):
        mine = not qos.partitions or partition in qos.partitions
        if qos.name == wanted or (wanted is None and qos.default and mine):
            return index, qos
        if qos.name == ANY and wanted is not None:
            rest = index, qos
    return rest


def queue_named(profile: SiteProfile, partition: str | None, qos: str | None) -> JobQueue:
    """Return the queue with these names; without a qos, that of the partition or the default."""
    found = partition_named(profile, partition)
    select, name = (found[1].select, found[1].name) if found else (None, partition)
    entry = qos_named(profile, qos or (select.qos if select else None), name)
    return JobQueue(partition=found, qos=entry)


def limits_on(size: SizeName, queue: JobQueue, nodes: int | None) -> Iterator[Limit]:
    """Yield the limits on `nodes`, `gpus` (of all nodes) or `time` [s] for a job of `nodes` nodes.

    If the number of nodes is unknown, the limits that depend on it are omitted.
    """
    key = f"max_{size}"
    entries: list[tuple[str, str, Partition | Qos]] = []
    if queue.partition is not None:
        index, partition = queue.partition
        entries.append((f"partitions.{index}", partition.name, partition))
    if queue.qos is not None:
        index, qos = queue.qos
        entries.append((f"qos.{index}", f"qos {qos.name}", qos))
    for path, who, entry in entries:
        limits: list[tuple[Any, str, str]] = [(getattr(entry, key), key, "")]
        if isinstance(entry, Partition):
            for number, bound in enumerate(entry.bounds if size == "time" and nodes else ()):
                if within((nodes or 0,), bound.nodes):
                    note = f"for {bound.nodes} nodes"
                    limits = [(bound.max_time, f"bounds.{number}.{key}", note)]
            limits += [(entry.nodes, "nodes", "")] if size == "nodes" else []
        if size == "time" and nodes and (area := entry.max_node_minutes) is not None:
            note = f"({area} node-minutes over {nodes} nodes)"
            limits.append((Duration(area * 60 // nodes), "max_node_minutes", note))
        for value, place, note in limits:
            if value is not None:
                yield Limit(value=value, who=who, key=f"{path}.{place}", note=note)
