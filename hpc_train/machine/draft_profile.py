"""The first lines of a drafted profile: of what it is, and where its values come from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import get_args

import msgspec

from hpc_train.base.units import Duration
from hpc_train.base.value import Value
from hpc_train.machine.hardware import Hardware, Software
from hpc_train.machine.infer_settings import Guess, gpu_order, guess
from hpc_train.machine.probe_job import NodeKind, NodeShape, kinds_of, shape
from hpc_train.plans.node_topology import nearest_nics
from hpc_train.sites.partition import Arch
from hpc_train.sites.profile import SCHEMA
from hpc_train.slurm.live_cluster import Cluster, LiveNode, LivePartition, LiveQos, Mpi


def heading(name: str, date: str, description: str, ask: str, source: str) -> Iterator[str]:
    """Yield the lines up to the scheduler; `ask` is what the description leaves open."""
    yield remark("A draft of `hpctrain site init`: check every line, then run")
    yield remark(f"hpctrain site show {name}")
    yield line("schema", SCHEMA)
    yield line("name", name)
    yield line("description", description, ask)
    yield line("verified_on", date)
    yield "sources:"
    yield line("  - what", source)
    yield line("    date", date)
    yield line("    confidence", "high")


YamlScalar = str | int | bool
Item = YamlScalar | tuple[YamlScalar, ...]
GUESSED = "guessed"

_PLAIN = re.compile(
    r"^(?:(--|/)?[A-Za-z][A-Za-z0-9_./=-]*"
    r"|(\d+[dhms])+|\d+[MG]|20\d\d-\d\d-\d\d)"
)
# YAML 1.1 parses these texts as other types.
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def line(key: str, value: Item, note: str = "", depth: int = 0) -> str:
    """Return `key: value  # note`."""
    return f"{'  ' * depth}{key}: {text(value)}{_comment(note)}"


def question(key: str, example: str, ask: str, depth: int = 0) -> str:
    """Return a key of unknown value, as a comment with a question."""
    return f"{'  ' * depth}# {key}: {example}{_comment(ask)}"


def remark(words: str, depth: int = 0) -> str:
    """Return a comment."""
    return f"{'  ' * depth}{_comment(words).strip()}"


def text(value: Item) -> str:
    """Write a value so that YAML parses it unchanged."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(text, value))}]"
    if isinstance(value, int):
        return str(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return msgspec.json.encode(value).decode()


def time(value: Duration) -> str:
    """Write a time in the notation of input files: 2d, 1h30m."""
    days, rest = divmod(int(value), 86400)
    parts = ((days, "d"), (rest // 3600, "h"), (rest % 3600 // 60, "m"), (rest % 60, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number)


def _comment(words: str) -> str:
    """Return text as a comment on one line."""
    plain = "".join(c if c.isprintable() else "?" for c in words)
    return f"  # {plain}" if plain else ""


class Findings(Value, frozen=True, kw_only=True):
    """Input of a draft: the live cluster, the probed nodes, and the programs of this login node.

    `launchers`: each launcher of hpctrain, with the program that must be on the PATH; empty if
    the launcher is part of Slurm or of the Python environment of the user.
    """

    name: str
    date: str
    cluster: Cluster
    hardware: Mapping[NodeShape, Hardware]
    launchers: Mapping[str, str]
    programs: tuple[str, ...] = ()
    slurm_conf: str | None = None


def draft(findings: Findings) -> str:
    """Return the text of the profile; unknown values are questions."""
    nodes = tuple(findings.hardware.values())
    # The profile is mainly for nodes with GPUs.
    main = next((node for node in nodes if node.gpus), next(iter(nodes), None))
    network = guess(main) if main else None
    parts = (
        _head(findings, main),
        _launchers(findings, main),
        partition_lines(findings.cluster, findings.hardware, network),
        _choice(findings.cluster),
        qos_lines(findings.cluster),
        _requests(findings.cluster, main),
        network_lines(main, network),
        around_lines(findings.cluster, main),
    )
    return "\n\n".join("\n".join(part) for part in map(tuple, parts) if part) + "\n"


def _head(findings: Findings, main: Hardware | None) -> Iterator[str]:
    cluster = findings.cluster
    yield remark(
        "A draft of `hpctrain site init`: check every line, answer the questions, then run"
    )
    yield remark(f"hpctrain site show {findings.name}")
    for said in (*cluster.unread, *(main.unread if main else ())):
        yield remark(said)
    yield line("schema", SCHEMA)
    yield line("name", findings.name)
    yield line(
        "description", f"Slurm cluster {cluster.name}", "which system, where, what hardware?"
    )
    yield question("operator", "…", "which institution operates it?")
    yield question("url", "https://…", "address of its documentation?")
    yield line("verified_on", findings.date)
    yield "sources:"
    asked = ", ".join(node.host for node in findings.hardware.values())
    more = f", and a job on {asked}" if asked else ""
    yield line("  - what", f"scontrol and sinfo of {cluster.name}{more}")
    yield line("    date", findings.date)
    yield line("    confidence", "medium")
    yield "detect:"
    yield line("clusters", (cluster.name,), depth=1)
    yield line("scheduler", "slurm")
    if version := ".".join(cluster.version.split(".")[:4]):
        yield f'slurm: "{version}"'
    if findings.slurm_conf:
        yield line("slurm_conf", findings.slurm_conf, "from $SLURM_CONF")
    arches = {node.arch for node in cluster.nodes}
    if len(arches) == 1 and arches <= set(get_args(Arch)):
        yield line("arch", arches.pop())


def _launchers(findings: Findings, main: Hardware | None) -> Iterator[str]:
    programs = main.software.programs if main else findings.programs
    there = [program for program in findings.launchers.values() if program in programs]
    allowed = (name for name, needed in findings.launchers.items() if needed in ("", *there))
    where = f"on the PATH of {main.host}" if main else "on the PATH here; also on the nodes?"
    yield "launchers:"
    chosen = f"{GUESSED}: hpctrain's choice; which one does the site recommend?"
    yield line("default", "torchrun", chosen, depth=1)
    found = f"{', '.join(there)} {'is' if len(there) == 1 else 'are'} {where}" if there else ""
    yield line("allowed", tuple(allowed), found, depth=1)
    yield question(
        "forbidden", "{mpirun: reason}", "which launchers does the site forbid?", depth=1
    )
    yield from _mpi(findings.cluster.mpi)
    if main is not None and main.software.mpirun:
        yield line("openmpi", main.software.mpirun, depth=1)


def _mpi(mpi: Mpi) -> Iterator[str]:
    """State the default of the cluster; without one, the type depends on the MPI of the user."""
    there = [name for name in mpi.plugins if name not in (*mpi.broken, "none")]
    listed = f"srun --mpi=list: {', '.join(mpi.plugins)}"
    if mpi.default not in ("", "none") and (mpi.default in there or not mpi.plugins):
        yield line("mpi", mpi.default, "MpiDefault of slurm.conf", depth=1)
    elif there:
        ask = f"{listed}; MpiDefault is {mpi.default or 'unknown'}: which one do ranks of MPI need?"
        yield question("mpi", there[0], ask, depth=1)


def _choice(cluster: Cluster) -> Iterator[str]:
    if not any(partition.default for partition in cluster.partitions):
        yield line("partition_choice", "job", "Slurm has no default partition")


def _requests(cluster: Cluster, main: Hardware | None) -> Iterator[str]:
    counted = any(node.gpus for node in cluster.nodes)
    typed = any(len(node.gpu_kinds) > 1 for node in cluster.nodes)
    if counted:
        modern = "cons" in cluster.limits.select
        why = f"Slurm counts GPUs with {cluster.limits.select or 'an unknown SelectType'}"
        yield line("gpu_request", "gpus-per-node" if modern else "gres", f"{GUESSED}: {why}")
    elif not cluster.nodes:
        yield question("gpu_request", "gpus-per-node", "which option requests GPUs?")
    else:
        yield line("gpu_request", "none", f"{GUESSED}: Slurm counts no GPUs on any node")
    if typed:
        yield line("gpu_request_typed", True, f"{GUESSED}: some nodes have several types")
    yield question("mem_request", "allowed", "must a job request memory, or must it not?")
    accounts = ", ".join(dict.fromkeys(one.account for one in cluster.associations))
    known = f"yours: {accounts}; " if accounts else ""
    yield question("account", "{required: true}", f"{known}must a job state its account?")
    submit = [a.max_submit_jobs for a in cluster.associations if a.max_submit_jobs]
    size = cluster.limits.max_array_size
    if size is not None or submit:
        yield "limits:"
    if size is not None:
        yield line("max_array_size", size, depth=1)
    if submit:
        yield line("max_submit_jobs", min(submit), depth=1)


def network_lines(main: Hardware | None, network: Guess | None) -> Iterator[str]:
    """Yield `network:`, or the question for it."""
    if main is None or network is None or network.fabric is None:
        yield question(
            "network",
            "{fabric: infiniband, interfaces: [ib0]}",
            "which network connects the nodes?",
        )
        yield remark("`hpctrain site init --probe` runs a job on a node of each kind")
        return
    yield "network:"
    yield line("fabric", network.fabric, f"{GUESSED}: {network.why}", depth=1)
    if network.interfaces:
        others = f"; also up: {', '.join(network.others)}" if network.others else ""
        yield line("interfaces", network.interfaces, f"{GUESSED}{others}", depth=1)
    if network.hcas:
        yield line("hcas", network.hcas, f"{GUESSED}: those with an active port", depth=1)
    for one in main.topology.gpus:
        if one.nics and (names := nearest_nics(one)):
            yield remark(f"nearest to GPU {one.gpu}: {', '.join(names)}", depth=1)
    if main.gpus and main.gpus[0].vendor == "amd":
        yield line("gpus", "amd", depth=1)


def around_lines(cluster: Cluster, main: Hardware | None) -> Iterator[str]:
    """Yield containers, modules, storage, internet access and requeue."""
    software = main.software if main else Software()
    runtime = _runtime(software)
    if runtime:
        yield "containers:"
        yield line("runtime", runtime, GUESSED, depth=1)
    elif main is None:
        yield question(
            "containers", "{runtime: apptainer}", "which container runtime is on the nodes?"
        )
    system = f" ({software.modules})" if software.modules else ""
    yield question("modules", "[cuda/12.4]", f"which modules does a job need?{system}")
    yield from _storage(main)
    if main is not None and main.reached is not None:
        yield "internet:"
        yield line("access", "yes" if main.reached else "no", "as found by the probe job", depth=1)
    else:
        yield question("internet", '{access: "no"}', "do compute nodes have internet access?")
    if cluster.limits.requeue is not None:
        yield "lifecycle:"
        yield line("requeue", cluster.limits.requeue, "JobRequeue", depth=1)


def _runtime(software: Software) -> str:
    if software.pyxis:
        return "pyxis"
    known = ("apptainer", "singularity", "podman-hpc", "shifter")
    return next((name for name in known if name in software.programs), "")


def _storage(main: Hardware | None) -> Iterator[str]:
    disks = main.disks if main else ()
    if not disks:
        yield question("storage", "{scratch: {path: $SCRATCH}}", "which file systems can jobs use?")
        return
    yield "storage:"
    for number, disk in enumerate(disks):
        yield f"  node_local{number or ''}:"
        size = f"{GUESSED}: {disk.kind}, {disk.size_mib // 1024} GiB"
        yield line("path", disk.path, size, depth=2)
        yield line("node_local", True, depth=2)


_MOST_GPUS = 64
_ENDED = ("REQUEUE", "CANCEL", "SUSPEND")


def partition_lines(
    cluster: Cluster,
    hardware: Mapping[NodeShape, Hardware],
    network: Guess | None,
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
