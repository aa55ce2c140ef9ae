"""Cluster -> the kinds of nodes of each partition."""

from __future__ import annotations

from collections import defaultdict

from hpc_train.base.slurm_options import Gres
from hpc_train.base.units import Memory
from hpc_train.base.value import Value
from hpc_train.slurm.live_cluster import Cluster, LiveNode, LivePartition

NodeShape = tuple[str, int, int, Memory | None, tuple[Gres, ...]]


class NodeKind(Value, frozen=True, kw_only=True):
    """Nodes with the same resources in Slurm; `mixed` if the partition also has other kinds."""

    partition: str
    nodes: tuple[LiveNode, ...]
    mixed: bool = False

    @property
    def sample(self) -> LiveNode:
        """Return one of the nodes, an idle one if there is any."""
        return next((n for n in self.nodes if n.state.startswith("IDLE")), self.nodes[0])


def kinds_of(cluster: Cluster, partition: LivePartition) -> tuple[NodeKind, ...]:
    """Return the kinds of a partition's nodes, the most common first."""
    groups: dict[NodeShape, list[LiveNode]] = defaultdict(list)
    for node in cluster.nodes:
        if partition.name in node.partitions:
            groups[shape(node)].append(node)
    found = sorted(groups.values(), key=len, reverse=True)
    return tuple(
        NodeKind(partition=partition.name, nodes=tuple(nodes), mixed=len(found) > 1)
        for nodes in found
    )


def kinds(cluster: Cluster, partition: str | None = None) -> tuple[NodeKind, ...]:
    """Return the different kinds of one partition, or of all, the default partition first."""
    queues = sorted(cluster.partitions, key=lambda one: not one.default)
    seen: dict[NodeShape, NodeKind] = {}
    for queue in queues:
        if partition in (None, queue.name):
            for kind in kinds_of(cluster, queue):
                seen.setdefault(shape(kind.nodes[0]), kind)
    return tuple(seen.values())


def shape(node: LiveNode) -> NodeShape:
    """Return the common resources of nodes of a kind."""
    return node.arch, node.cpus, node.threads, node.memory, node.gres
