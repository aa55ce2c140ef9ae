"""The partition and the QOS that a job uses, and the limits that Slurm applies to it.

Slurm applies the limits of the partition and those of the quality of service (SchedMD, Resource
Limits). An entry is an index into the profile's list, and the partition or the qos itself.
"""

from collections.abc import Iterator
from typing import Any, Literal

from hpc_train.base.units import Duration
from hpc_train.base.value import Value
from hpc_train.sites.partition import ANY, Bound, Partition, Qos, bound_for
from hpc_train.sites.profile import SiteProfile

PartitionEntry = tuple[int, Partition]
QosEntry = tuple[int, Qos]
SizeName = Literal["nodes", "gpus", "time"]


class JobQueue(Value, frozen=True, kw_only=True):
    """The entries of the profile that limit a job, and the account that is charged."""

    partition: PartitionEntry | None
    qos: QosEntry | None
    account: str | None


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


def queue_named(
    profile: SiteProfile, partition: str | None, qos: str | None, account: str | None
) -> JobQueue:
    """Return the queue with these names."""
    found = partition_named(profile, partition)
    name = found[1].name if found else partition
    return JobQueue(partition=found, qos=qos_named(profile, qos, name), account=account)


def limits_on(size: SizeName, queue: JobQueue, nodes: int | None) -> Iterator[Limit]:
    """Yield the limits on `nodes`, `gpus` (of all nodes) or `time` [s] for a job of `nodes` nodes.

    If the number of nodes is unknown, the limits that depend on it are omitted.
    """
    key = f"max_{size}"
    if queue.partition is not None:
        yield from _of_partition(key, queue.partition, nodes, queue.account)
    if queue.qos is not None:
        index, qos = queue.qos
        yield from _given(getattr(qos, key), f"qos {qos.name}", f"qos.{index}.{key}")
    if size == "time" and nodes:
        yield from _by_area(queue, nodes)


def _given(value: Any, who: str, key: str) -> Iterator[Limit]:
    if value is not None:
        yield Limit(value=value, who=who, key=key)


def _of_partition(
    key: str, found: PartitionEntry, nodes: int | None, account: str | None
) -> Iterator[Limit]:
    """Yield the limit of the partition, or that of a bound, which replaces it."""
    index, partition = found
    path = f"partitions.{index}"
    bound = bound_for(partition, key, nodes, account) if nodes is not None else None
    if bound is not None:
        place = f"{path}.bounds.{bound[0]}.{key}"
        value, note = getattr(bound[1], key), _described(bound[1])
        yield Limit(value=value, who=partition.name, key=place, note=note)
    else:
        yield from _given(getattr(partition, key), partition.name, f"{path}.{key}")
    if key == "max_nodes":
        yield from _given(partition.nodes, partition.name, f"{path}.nodes")


def _described(bound: Bound) -> str:
    nodes = f"for {bound.nodes} nodes" if bound.nodes else ""
    account = f"for the account {bound.account}" if bound.account else ""
    return " ".join(filter(None, (nodes, account)))


def _by_area(queue: JobQueue, nodes: int) -> Iterator[Limit]:
    """Yield the limits on the time that follow from limits on nodes x minutes."""
    entries: list[tuple[str, str, Partition | Qos]] = []
    if queue.partition is not None:
        index, partition = queue.partition
        entries.append((f"partitions.{index}", partition.name, partition))
    if queue.qos is not None:
        index, qos = queue.qos
        entries.append((f"qos.{index}", f"qos {qos.name}", qos))
    for path, who, entry in entries:
        if entry.max_node_minutes is not None:
            yield Limit(
                value=Duration(entry.max_node_minutes * 60 // nodes),
                who=who,
                key=f"{path}.max_node_minutes",
                note=f"({entry.max_node_minutes} node-minutes over {nodes} nodes)",
            )
