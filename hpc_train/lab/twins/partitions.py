"""A profile's partitions -> the partitions and nodes in Slurm of its twin."""

from __future__ import annotations

import re

from hpc_train.base.units import LARGEST_MIB
from hpc_train.base.value import Value
from hpc_train.sites.partition import ANY, Partition
from hpc_train.sites.profile import SiteProfile

# Partition of jobs that name none; no partition of a site has this name.
UNNAMED = "unnamed"
# Name of `*` if the profile names no other partition: sample jobs name this one.
ANY_NAME = "gpu"

# A node of unknown size accepts any request.
UNKNOWN_CPUS, UNKNOWN_GPUS = 256, 64
# Of all partitions of unknown size together; with more, slurmctld takes seconds for each job.
_UNKNOWN_NODES = 2000
_FEATURE = re.compile(r"[A-Za-z_][\w.-]*")


class NodeSize(Value, frozen=True, kw_only=True):
    """A kind of node; `gpus` is None if Slurm does not count them."""

    cpus: int
    reserved: int
    threads: int
    mem: int
    gpus: int | None
    gpu_type: str | None
    features: tuple[str, ...]


class Pool(Value, frozen=True, kw_only=True):
    """Nodes of one shape, NAME1 to NAMEn; partitions with the same shape share them."""

    name: str
    shape: NodeSize
    count: int

    @property
    def hosts(self) -> str:
        """Return the host list in Slurm's notation."""
        return f"{self.name}[1-{self.count}]"


def queue_name(partition: Partition) -> str:
    """Return Slurm's name for a partition of the profile."""
    if partition.select is not None:
        return partition.select.partition or UNNAMED
    return ANY_NAME if partition.name == ANY else partition.name


def stands_for_others(partition: Partition) -> bool:
    """Return whether an entry of a profile names no partition of Slurm."""
    return partition.name == ANY and partition.select is None


def twin_partitions(profile: SiteProfile) -> tuple[Partition, ...]:
    """Return the partitions of the profile that the twin has: those that have a name, if any."""
    named = tuple(one for one in profile.partitions if not stands_for_others(one))
    return named or profile.partitions or (Partition(name=ANY, default=True),)


def queues(profile: SiteProfile) -> dict[str, tuple[Partition, ...]]:
    """Return Slurm's partitions, each with the partitions of the profile that use it."""
    found: dict[str, tuple[Partition, ...]] = {}
    for partition in twin_partitions(profile):
        name = queue_name(partition)
        found[name] = (*found.get(name, ()), partition)
    return found


def default_queue(profile: SiteProfile) -> str | None:
    """Return the default partition, if there is one."""
    found = queues(profile)
    if UNNAMED in found:
        return UNNAMED
    defaults = (name for name, users in found.items() if any(e.default for e in users))
    return next(defaults, None)


def pools(profile: SiteProfile) -> dict[NodeSize, Pool]:
    """Return the nodes, by their shape."""
    sizes: dict[NodeSize, list[Partition]] = {}
    for shared in queues(profile).values():
        for entry in shared:
            sizes.setdefault(shape_of(entry, profile), []).append(entry)
    unknown = sum(None in map(known_nodes, users) for users in sizes.values())
    found = {}
    for number, (shape, users) in enumerate(sizes.items(), start=1):
        name = _node_name(users[0].name, number)
        counts = [known_nodes(entry) or _named_nodes(entry) for entry in users]
        if None in map(known_nodes, users):
            counts.append(_UNKNOWN_NODES // unknown)
        found[shape] = Pool(name=name, shape=shape, count=max(counts))
    return found


def shape_of(partition: Partition, profile: SiteProfile) -> NodeSize:
    """Return the shape of the nodes of a partition."""
    gpus = partition.gpus_per_node
    counted = profile.gpu_request != "none"
    share = (partition.cpus_per_gpu or 0) * (gpus or 0)
    return NodeSize(
        cpus=partition.cpus_per_node or max(share, UNKNOWN_CPUS),
        reserved=partition.reserved_cpus or 0,
        threads=partition.threads_per_core or 1,
        mem=int(partition.mem_per_node or LARGEST_MIB),
        gpus=(UNKNOWN_GPUS if gpus is None else gpus) if counted else None,
        gpu_type=partition.gpu_type,
        features=features(partition),
    )


def features(partition: Partition) -> tuple[str, ...]:
    """Return the features in a partition's constraint."""
    constraint = partition.select.constraint if partition.select else None
    return tuple(dict.fromkeys(_FEATURE.findall(constraint or "")))


def most(partition: Partition, name: str) -> int | None:
    """Return the largest `max_NAME` of a partition for any job; None means no limit."""
    own = getattr(partition, f"max_{name}")
    special = [getattr(bound, f"max_{name}") for bound in partition.bounds]
    found = [value for value in (own, *special) if value is not None]
    covered = own is not None or any(
        bound.nodes is None and bound.account is None and value is not None
        for bound, value in zip(partition.bounds, special, strict=True)
    )
    return max(found) if covered else None


def known_nodes(partition: Partition) -> int | None:
    """Return the number of nodes, or of the largest job; None if the profile states neither."""
    return partition.nodes or most(partition, "nodes")


def _named_nodes(partition: Partition) -> int:
    """Return the largest number of nodes that a limit mentions."""
    said = (int(n) for bound in partition.bounds for n in re.findall(r"\d+", bound.nodes or ""))
    return max(1, partition.min_nodes or 1, *said)


def _node_name(name: str, number: int) -> str:
    """Return a unique prefix, with the characters that a host name allows."""
    return f"{re.sub(r'[^A-Za-z0-9]+', '-', name).strip('-') or 'node'}-{number}n"
