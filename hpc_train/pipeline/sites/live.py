"""A profile against the live scheduler: what the two say differently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hpc_train.model.cluster import Cluster, LiveNode, LivePartition
from hpc_train.model.partition import Partition
from hpc_train.model.site import SiteProfile
from hpc_train.model.units import Memory
from hpc_train.model.value import Sourced, Value

Site = Sourced[SiteProfile]

# Of Slurm and of the profile, by the name of both.
_SAME = ("max_time", "default_time", "max_nodes", "min_nodes", "nodes")
_NOT_SLURMS = "not there"


class Difference(Value, frozen=True, kw_only=True):
    """One value of which profile and cluster say another; both as text."""

    key: str
    place: str
    profile: str
    cluster: str


def compare(site: Site, cluster: Cluster) -> tuple[Difference, ...]:
    """Return what differs; what the profile does not say is no difference."""
    return tuple(
        difference
        for make in (_identity, _partitions, _qos, _launchers, _limits)
        for difference in make(site, cluster)
    )


def _identity(site: Site, cluster: Cluster) -> Iterator[Difference]:
    said = site.value.slurm
    if said is not None and cluster.version and not f"{cluster.version}.".startswith(f"{said}."):
        yield _difference(site, "slurm", said, cluster.version)
    known = site.value.detect.clusters if site.value.detect else ()
    if known and cluster.name not in known:
        yield _difference(site, "detect.clusters", ", ".join(known), cluster.name)


def _partitions(site: Site, cluster: Cluster) -> Iterator[Difference]:
    live = {one.name: one for one in cluster.partitions}
    said = [name for one in site.value.partitions if (name := _slurms_name(one))]
    for index, partition in enumerate(site.value.partitions):
        name = _slurms_name(partition)
        if name is None:
            continue
        if name not in live:
            yield _difference(site, f"partitions.{index}.name", name, _NOT_SLURMS)
            continue
        key = f"partitions.{index}"
        if said.count(name) == 1:
            yield from _of_partition(site, key, partition, live[name])
        mine = [node for node in cluster.nodes if name in node.partitions]
        if mine and said.count(name) == 1:
            yield from _of_nodes(site, key, partition, mine)


def _slurms_name(partition: Partition) -> str | None:
    """Return the name that Slurm knows; None where a job names no partition, or its own."""
    if partition.select is not None:
        return partition.select.partition
    return partition.name if partition.name != "*" else None


def _of_partition(
    site: Site, key: str, partition: Partition, live: LivePartition
) -> Iterator[Difference]:
    for name in _SAME:
        said, found = getattr(partition, name), getattr(live, name)
        if said is not None and said != found and not (name == "max_nodes" and found is None):
            yield _difference(site, f"{key}.{name}", said, found)
    if partition.default and partition.select is None and not live.default:
        yield _difference(site, f"{key}.default", "true", "false")


def _of_nodes(
    site: Site, key: str, partition: Partition, nodes: list[LiveNode]
) -> Iterator[Difference]:
    facts: dict[str, set[Any]] = {
        "cpus_per_node": {node.cpus for node in nodes},
        "gpus_per_node": {node.gpus for node in nodes},
        "gpu_type": {kind for node in nodes for kind in node.gpu_kinds},
        "arch": {node.arch for node in nodes},
    }
    for name, found in facts.items():
        said = getattr(partition, name)
        if said is not None and found and said not in found:
            yield _difference(site, f"{key}.{name}", said, " or ".join(map(str, sorted(found))))
    memory = [node.memory for node in nodes if node.memory is not None]
    if partition.mem_per_node is not None and memory and partition.mem_per_node > max(memory):
        most = Memory(max(memory))
        yield _difference(site, f"{key}.mem_per_node", partition.mem_per_node, most)
    wanted = partition.select.constraint if partition.select else None
    features = {feature for node in nodes for feature in node.features}
    if wanted and wanted.isidentifier() and wanted not in features:
        yield _difference(site, f"{key}.select.constraint", wanted, _NOT_SLURMS)


def _qos(site: Site, cluster: Cluster) -> Iterator[Difference]:
    live = {one.name: one for one in cluster.qos}
    for index, qos in enumerate(site.value.qos if live else ()):
        key = f"qos.{index}"
        if qos.name == "*":
            continue
        if qos.name not in live:
            yield _difference(site, f"{key}.name", qos.name, _NOT_SLURMS)
            continue
        for name in ("max_time", "max_nodes", "max_gpus", "max_jobs"):
            said, found = getattr(qos, name), getattr(live[qos.name], name)
            if said is not None and said != found:
                yield _difference(site, f"{key}.{name}", said, found)


def _launchers(site: Site, cluster: Cluster) -> Iterator[Difference]:
    containers = site.value.containers
    said = {
        "launchers.mpi": site.value.launchers.mpi,
        "containers.mpi": containers.mpi if containers else None,
    }
    for key, plugin in said.items():
        if plugin is None or not cluster.mpi.plugins:
            continue
        if plugin not in (*cluster.mpi.plugins, "none"):
            yield _difference(site, key, plugin, ", ".join(cluster.mpi.plugins))
        elif plugin in cluster.mpi.broken:
            yield _difference(site, key, plugin, "srun cannot load it")


def _limits(site: Site, cluster: Cluster) -> Iterator[Difference]:
    said, found = site.value.limits.max_array_size, cluster.limits.max_array_size
    if said is not None and found is not None and said > found:
        yield _difference(site, "limits.max_array_size", said, found)
    lifecycle = site.value.lifecycle
    requeue = lifecycle.requeue if lifecycle else None
    if requeue is not None and cluster.limits.requeue not in (None, requeue):
        yield _difference(site, "lifecycle.requeue", requeue, cluster.limits.requeue)


def _difference(site: Site, key: str, said: object, found: object) -> Difference:
    return Difference(
        key=key,
        place=site.near(key),
        profile=str(said),
        cluster="no limit" if found is None else str(found),
    )
