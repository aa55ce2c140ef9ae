"""Cluster and probed nodes -> the partitions and qualities of service of a draft."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hpc_train.model.hardware import Hardware
from hpc_train.model.live_cluster import Cluster, LiveNode, LivePartition, LiveQos
from hpc_train.model.node_topology import nearest_nics
from hpc_train.model.switch_topology import SwitchTopology
from hpc_train.probe.infer_settings import Guess, gpu_order, guess
from hpc_train.probe.node_kinds import NodeKind, NodeShape, kinds_of, shape
from hpc_train.probe.yaml_text import GUESSED, line, question, remark, time

_MOST_GPUS = 64
_ENDED = ("REQUEUE", "CANCEL", "SUSPEND")


def partition_lines(
    cluster: Cluster,
    hardware: Mapping[NodeShape, Hardware],
    network: Guess | None,
    switches: SwitchTopology | None = None,
) -> Iterator[str]:
    """Yield `partitions:` with values of Slurm and the probed nodes."""
    yield "partitions:"
    for partition in cluster.partitions:
        found = kinds_of(cluster, partition)
        yield f"  {line('- name', partition.name)}"
        lines = [*_limits(cluster, partition)]
        if found:
            machine = hardware.get(shape(found[0].nodes[0]))
            lines += _nodes(found)
            lines += _gpus(found[0].nodes[0], machine)
            lines += _network(machine, network)
            lines += _switches(switches, found)
        yield from (f"    {one}" for one in (*lines, *_remarks(partition)))


def qos_lines(cluster: Cluster) -> Iterator[str]:
    """Yield `qos:` with those that the user may use."""
    mine = {name for one in cluster.associations for name in one.qos}
    found = [one for one in cluster.qos if not mine or one.name in mine]
    if not found:
        return
    defaults = {one.default_qos for one in cluster.associations if one.default_qos}
    yield "qos:"
    for qos in found:
        yield f"  {line('- name', qos.name)}"
        yield from (f"    {one}" for one in _qos(cluster, qos, defaults == {qos.name}))


def _limits(cluster: Cluster, partition: LivePartition) -> Iterator[str]:
    nodes = partition.nodes
    longest, default = partition.max_time, partition.default_time
    if partition.default:
        yield line("default", True)
    if nodes:
        yield line("nodes", nodes)
        yield line("max_nodes", partition.largest or nodes)
    if partition.min_nodes and partition.min_nodes > 1 and partition.min_nodes <= nodes:
        yield line("min_nodes", partition.min_nodes)
    yield line("max_time", time(longest)) if longest else remark("no time limit")
    if default and (longest is None or default <= longest):
        yield line("default_time", time(default))
    if partition.shared is False:
        yield line("shared", False)
    elif partition.shared and "cons" in cluster.limits.select:
        yield line("shared", True)


def _nodes(found: tuple[NodeKind, ...]) -> Iterator[str]:
    node, note = found[0].nodes[0], ""
    if len(found) > 1:
        note = f"{GUESSED}: {len(found[0].nodes)} nodes are like this"
    if node.cpus:
        yield line("cpus_per_node", node.cpus, note)
    if node.all_cpus > node.cpus:
        yield line("reserved_cpus", node.all_cpus - node.cpus)
    if node.threads > 1:
        yield line("threads_per_core", node.threads)
    if node.memory:
        yield line("mem_per_node", str(node.memory), note)
    for kind in found[1:]:
        yield remark(f"{len(kind.nodes)} nodes like {kind.nodes[0].name} differ: {_words(kind)}")
    if features := sorted({name for kind in found for n in kind.nodes for name in n.features}):
        yield remark(f"features for a job's constraint: {', '.join(features[:20])}")


def _gpus(node: LiveNode, machine: Hardware | None) -> Iterator[str]:
    seen = machine.gpus if machine else ()
    count = node.gpus or len(seen)
    if count > _MOST_GPUS:
        yield remark(f"Slurm counts {count} GPUs on a node, more than hpctrain supports")
        return
    yield line("gpus_per_node", count)
    if not count:
        return
    if node.gpu_kinds:
        more = f"also {', '.join(node.gpu_kinds[1:])}" if len(node.gpu_kinds) > 1 else ""
        yield line("gpu_type", node.gpu_kinds[0], more and f"{GUESSED}: {more}")
    else:
        yield question("gpu_type", "a100", "which types does --gres=gpu:TYPE:N accept here?")
    if seen and seen[0].name:
        yield line("gpu_model", seen[0].name)
    if machine is not None and len(seen) == count and (order := gpu_order(machine)):
        yield line("gpu_order", order, f"{GUESSED}: from the cores that the driver reports")
    if machine is not None and len(seen) == count:
        yield from _numa(machine)
        near = [",".join(nearest_nics(place)) for place in machine.topology.gpus]
        if near and all(near):
            yield line("gpu_nics", tuple(near))


def _numa(machine: Hardware) -> Iterator[str]:
    """Yield the cores of each NUMA node, and the node of each GPU, if all of them are known."""
    nodes, places = machine.topology.numa, [one.numa for one in machine.topology.gpus]
    cpus = [node.cpus for node in nodes]
    # Memory alone, as of a GPU, is a node without cores, behind the others.
    while cpus and not cpus[-1]:
        cpus.pop()
    if not all(cpus) or [node.number for node in nodes] != list(range(len(nodes))):
        return
    if places and all(place is not None and place < len(cpus) for place in places):
        yield line("numa_cpus", tuple(cpus))
        yield line("gpu_numa", tuple(place for place in places if place is not None))


def _network(machine: Hardware | None, network: Guess | None) -> Iterator[str]:
    if machine is None:
        return
    found = guess(machine)
    count = len(found.hcas) or (len(found.interfaces) if found.fabric == "slingshot" else 0)
    if count:
        yield line("nics_per_node", count)
    if found.gbps:
        yield line("nic_gbps", found.gbps)
    if network is None or found.fabric != network.fabric:
        return
    if found.interfaces and found.interfaces != network.interfaces:
        yield line("interfaces", found.interfaces, GUESSED)
    if found.hcas and found.hcas != network.hcas:
        yield line("hcas", found.hcas, GUESSED)


def _switches(switches: SwitchTopology | None, found: tuple[NodeKind, ...]) -> Iterator[str]:
    """Yield the nodes of the largest leaf switch or block, where Slurm knows more than one."""
    if switches is None or len(switches.leaves) < 2:
        return
    most = switches.most_of([node.name for kind in found for node in kind.nodes])
    if most:
        key = "nodes_per_switch" if switches.kind == "tree" else "nodes_per_block"
        yield line(key, most, f"scontrol show topology: {switches.summary}")


def _remarks(partition: LivePartition) -> Iterator[str]:
    if partition.state not in ("", "UP"):
        yield remark(f"its state was {partition.state}")
    if partition.allowed_accounts:
        yield remark(f"only for the accounts {', '.join(partition.allowed_accounts[:12])}")
    if partition.allowed_qos:
        yield remark(f"only for the QOS {', '.join(partition.allowed_qos[:12])}")
    if any(word in partition.preempt_mode for word in _ENDED):
        said = f"PreemptMode={partition.preempt_mode}: may jobs here be preempted?"
        yield question("preemption", "{grace: 5m}", said)


def _qos(cluster: Cluster, qos: LiveQos, default: bool) -> Iterator[str]:
    if default:
        yield line("default", True)
    allowing = tuple(
        one.name for one in cluster.partitions if not one.allowed_qos or qos.name in one.allowed_qos
    )
    if allowing and len(allowing) < len(cluster.partitions):
        yield line("partitions", allowing)
    if qos.max_time:
        yield line("max_time", time(qos.max_time))
    limits = (("max_nodes", qos.max_nodes), ("max_gpus", qos.max_gpus), ("max_jobs", qos.max_jobs))
    yield from (line(key, number) for key, number in limits if number)


def _words(kind: NodeKind) -> str:
    node = kind.nodes[0]
    gres = ", ".join(f"{g.count} {g.kind or g.name}" for g in node.gres)
    return "; ".join(filter(None, (f"{node.cpus} CPUs", str(node.memory or ""), gres)))
