"""The probe script as a short job on a node of each kind -> Hardware."""

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence

from hpc_train.base.errors import ProbeError, UnknownNameError
from hpc_train.base.processes import answer_of, collect, environment, launch
from hpc_train.base.slurm_options import Gres
from hpc_train.base.values import Memory, Value
from hpc_train.machine.hardware import Hardware
from hpc_train.machine.probe_script import MARK, probe_script
from hpc_train.machine.read_hardware import read_hardware
from hpc_train.slurm.live_cluster import Cluster, LiveNode

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


def kinds(cluster: Cluster, partition: str | None = None) -> tuple[NodeKind, ...]:
    """Return the different kinds of one partition, or of all, the default partition first.

    The most common of a partition come first.
    """
    seen: dict[NodeShape, NodeKind] = {}
    for queue in sorted(cluster.partitions, key=lambda one: not one.default):
        groups: dict[NodeShape, list[LiveNode]] = defaultdict(list)
        for node in cluster.nodes:
            if queue.name in node.partitions and partition in (None, queue.name):
                groups[shape(node)].append(node)
        for nodes in sorted(groups.values(), key=len, reverse=True):
            kind = NodeKind(partition=queue.name, nodes=tuple(nodes), mixed=len(groups) > 1)
            seen.setdefault(shape(nodes[0]), kind)
    return tuple(seen.values())


def shape(node: LiveNode) -> NodeShape:
    """Return the common resources of nodes of a kind."""
    return node.arch, node.cpus, node.threads, node.memory, node.gres


QUEUE_S = 300
_PATIENCE_S = QUEUE_S + 330.0
# On a site with more kinds of nodes, one partition is probed at a time.
MOST = 6


class Probed(Value, frozen=True, kw_only=True):
    """Hardware of nodes, by their shape; `unread` lists the nodes that did not answer."""

    hardware: Mapping[NodeShape, Hardware]
    unread: tuple[str, ...] = ()


def probe(cluster: Cluster, partition: str | None, words: Sequence[str]) -> Probed:
    """Probe a node of each kind in parallel; inside an allocation, one of its nodes.

    `partition` is that of the job, default all, `words` are more options of srun.

    Raises:
        ProbeError: no node answered.
        UnknownNameError: there is no partition of that name.
    """
    names = [one.name for one in cluster.partitions]
    if partition is not None and partition not in names:
        raise UnknownNameError("partition", partition, names)
    script = probe_script()
    if outer := os.environ.get("SLURM_JOB_ID"):
        host = os.environ.get("SLURMD_NODENAME")
        own = kinds(cluster, os.environ.get("SLURM_JOB_PARTITION"))
        found = sorted(own, key=lambda kind: all(node.name != host for node in kind.nodes))[:1]
        step = ["srun", f"--jobid={outer}", "--overlap"]
        options = [[*step, *([f"--nodelist={host}"] if host else [])] for _ in found]
    else:
        found = list(kinds(cluster, partition))
        options = [[*_options(kind), *words] for kind in found]
    whole = ("--nodes=1", "--ntasks=1", "--input=none")
    asked = [
        (kind, launch((*srun, *whole, "bash", "-c", script), None, environment()))
        for kind, srun in zip(found[:MOST], options, strict=False)
    ]
    unread = [
        f"not probed: nodes like {kind.sample.name} of partition {kind.partition}: use --partition"
        for kind in found[MOST:]
    ]
    hardware: dict[NodeShape, Hardware] = {}
    for kind, process in asked:
        done = collect(process, _PATIENCE_S)
        if MARK in done.stdout:
            hardware[shape(kind.nodes[0])] = read_hardware(done.stdout)
        else:
            said = answer_of(done).problem or "the job printed nothing"
            unread.append(f"could not be read: a node of partition {kind.partition}: {said}")
    if not hardware:
        raise ProbeError(
            unread[0] if unread else "could not be read: Slurm lists no node",
            "run without --probe, use another --partition, or add options: --srun=--account=NAME",
        )
    return Probed(hardware=hardware, unread=tuple(unread))


def _options(kind: NodeKind) -> list[str]:
    node = kind.sample
    return [
        "srun",
        "--job-name=hpctrain-probe",
        f"--partition={kind.partition}",
        "--exclusive",
        "--time=00:05:00",
        f"--immediate={QUEUE_S}",
        *([f"--gres=gpu:{node.gpus}"] if node.gpus else []),
        *([f"--nodelist={node.name}"] if kind.mixed else []),
    ]
