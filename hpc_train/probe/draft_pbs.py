"""Answers of a live PBS -> the draft of a profile; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Literal

from hpc_train.model.live_pbs import LivePbs, PbsNode, PbsQueue, number, pbs_time
from hpc_train.model.site import SCHEMA
from hpc_train.model.units import Duration
from hpc_train.probe.yaml_text import GUESSED, line, question, remark, time

# What starts the ranks of a job on its nodes.
PROGRAMS = ("mpiexec", "mpirun", "pbs_tmrsh")
# Resources of nodes that PBS itself has.
_BUILT_IN = {"arch", "host", "vnode", "mem", "vmem", "ncpus", "ngpus", "hpmem", "Qlist"}
_EXCLUSIVE = {"force_excl", "force_exclhost", "default_excl", "default_exclhost"}
_MODELS = ("gpu_model", "gputype", "gpu_type", "accelerator_model")
_MOST_GPUS = 64
Shape = tuple[int | None, int, int | None]


def draft_pbs(name: str, date: str, pbs: LivePbs, programs: Collection[str]) -> str:
    """Return the text of the profile; unknown values are questions.

    `programs` are those of PROGRAMS that this machine has.
    """
    parts = (_head(name, date, pbs), _jobs(pbs), _launchers(programs), _partitions(pbs))
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _head(name: str, date: str, pbs: LivePbs) -> Iterator[str]:
    yield remark("A draft of `hpctrain site init`: check every line, then run")
    yield remark(f"hpctrain site show {name}")
    yield line("schema", SCHEMA)
    yield line("name", name)
    yield line("description", f"The PBS server {pbs.name}", "which machines, where?")
    yield line("verified_on", date)
    yield "sources:"
    version = f" {pbs.version}" if pbs.version else ""
    yield line("  - what", f"qstat -Bf, qstat -Qf and pbsnodes -a of {pbs.name}, PBS{version}")
    yield line("    date", date)
    yield line("    confidence", "high")
    yield line("scheduler", "pbs")


def _jobs(pbs: LivePbs) -> Iterator[str]:
    yield "pbs:"
    yield line("shape", "select", f"{GUESSED}: or flat, if the site's examples have no select", 1)
    yield question("project", "-P", "is a project -A, the default, or -P?", 1)
    systems = {node.resources["system"] for node in pbs.nodes if "system" in node.resources}
    if systems:
        yield question("chunk", f"{{system: {min(systems)}}}", "does select name the system?", 1)
    yield question("account", "{required: true}", "must a job name a project?")
    files = pbs.available.get("valid_filesystems")
    if files:
        yield question("directives", "{l: filesystems=NAME}", f"which of {files}?")
    if pbs.history is None:
        yield remark("the server keeps no finished jobs: their state is that of the run's files")
    else:
        yield remark(f"the server keeps finished jobs for {pbs.history}")


def _launchers(programs: Collection[str]) -> Iterator[str]:
    yield "launchers:"
    yield line("default", "torchrun", depth=1)
    mpi = [one for one in ("mpiexec", "mpirun") if one in programs]
    note = f"{GUESSED}: mpiexec is that of Cray PALS" if "mpiexec" in mpi else ""
    yield line("allowed", ("torchrun", *mpi, "spawn", "single"), note, 1)
    if "pbs_tmrsh" not in programs:
        yield remark("no pbs_tmrsh here; pbs.starter may be pals or openmpi", 1)
    yield question("setup", "[source ~/venv/bin/activate]", "which environment has torch?")


def _partitions(pbs: LivePbs) -> Iterator[str]:
    yield "partitions:"
    named = {queue.name: queue for queue in pbs.queues}
    for queue in pbs.shown:
        targets = [named[one] for one in queue.destinations if one in named]
        yield f"  {line('- name', queue.name)}"
        yield from (f"    {one}" for one in _queue(pbs, queue, targets))
    closed = [queue.name for queue in pbs.queues if not queue.open]
    if closed:
        yield remark(f"closed queues: {', '.join(closed)}", 1)


def _queue(pbs: LivePbs, queue: PbsQueue, targets: list[PbsQueue]) -> Iterator[str]:
    if queue.name == pbs.default_queue:
        yield line("default", True)
    if targets:
        yield line("description", f"routes jobs to {', '.join(one.name for one in targets)}")
    named = {node.name: node for one in targets or [queue] for node in nodes_of(pbs, one)}
    nodes = list(named.values())
    yield from _limits(queue, targets, len({node.host for node in nodes}))
    default = pbs_time(queue.default.get("walltime") or pbs.default.get("walltime"))
    longest = _longest(queue, targets)
    if default and (longest is None or default <= longest):
        yield line("default_time", time(default))
    yield from _nodes(nodes, without_gpus=queue.most.get("ngpus") == "0")


def _limits(queue: PbsQueue, targets: list[PbsQueue], hosts: int) -> Iterator[str]:
    if hosts:
        yield line("nodes", hosts)
    most = number(queue.most.get("nodect")) or _widest(targets, "most")
    least = number(queue.least.get("nodect")) or _widest(targets, "least")
    if most and hosts and most > hosts:
        yield line("max_nodes", hosts, f"the limit of the queue is {most}")
    elif most:
        yield line("max_nodes", most)
    if least and least > 1:
        fits = not hosts or least <= hosts
        yield line("min_nodes", least) if fits else remark(f"at least {least} nodes of a job")
    gpus = number(queue.most.get("ngpus"))
    if gpus:
        yield line("max_gpus", gpus)
    shortest = pbs_time(queue.least.get("walltime"))
    if shortest:
        yield line("min_time", time(shortest))
    longest = _longest(queue, targets)
    yield line("max_time", time(longest)) if longest else remark("no time limit is stated")
    cores = queue.most.get("ncpus")
    if cores:
        yield remark(f"at most {cores} cores of a job")


def _widest(targets: list[PbsQueue], which: Literal["most", "least"]) -> int | None:
    """Return the widest limit of nodes of the destinations; None if one of them has none."""
    found = [number(getattr(one, which).get("nodect")) for one in targets]
    known = [one for one in found if one is not None]
    if not known or len(known) < len(targets):
        return None
    return max(known) if which == "most" else min(known)


def _longest(queue: PbsQueue, targets: list[PbsQueue]) -> Duration | None:
    own = pbs_time(queue.most.get("walltime"))
    if own or not targets:
        return own
    found = [pbs_time(one.most.get("walltime")) for one in targets]
    known = [one for one in found if one is not None]
    return max(known) if len(known) == len(targets) else None


def nodes_of(pbs: LivePbs, queue: PbsQueue) -> tuple[PbsNode, ...]:
    """Return the nodes of a queue: its own, those whose Qlist has it, else those of no queue."""
    wanted = queue.chunk.get("Qlist", queue.name)
    own = [
        node
        for node in pbs.nodes
        if node.queue == queue.name or wanted in node.resources.get("Qlist", "").split(",")
    ]
    free = [node for node in pbs.nodes if not node.queue and "Qlist" not in node.resources]
    return tuple(own or free)


def _nodes(nodes: list[PbsNode], *, without_gpus: bool) -> Iterator[str]:
    """Yield what a host has: that of most hosts, and the others as remarks."""
    if not nodes:
        yield question("cpus_per_node", "64", "pbsnodes shows no node of this queue: cores?")
        return
    hosts: dict[str, list[PbsNode]] = {}
    for node in nodes:
        hosts.setdefault(node.host, []).append(node)
    shapes = Counter(_shape(own) for own in hosts.values())
    (cores, gpus, memory), count = shapes.most_common(1)[0]
    note = f"{GUESSED}: {count} of {len(hosts)} nodes are like this" if len(shapes) > 1 else ""
    if cores:
        yield line("cpus_per_node", cores, note)
    if gpus <= _MOST_GPUS:
        yield line("gpus_per_node", 0 if without_gpus else gpus, note)
    models = {node.resources[key] for node in nodes for key in _MODELS if key in node.resources}
    if gpus and len(models) == 1 and not without_gpus:
        yield line("gpu_model", models.pop())
    if memory:
        yield line("mem_per_node", f"{memory}M", note)
    yield from _remarks(hosts, shapes)


def _remarks(hosts: Mapping[str, list[PbsNode]], shapes: Counter[Shape]) -> Iterator[str]:
    for (cores, gpus, memory), count in shapes.most_common()[1:5]:
        yield remark(f"{count} nodes: {cores} cores, {gpus} GPUs, {memory} MiB")
    if any(len(own) > 1 for own in hosts.values()):
        yield remark("a node has several vnodes; place=scatter gives one chunk to each node")
    nodes = [node for own in hosts.values() for node in own]
    if {node.sharing for node in nodes} <= _EXCLUSIVE:
        yield line("shared", False)
    others = {name for node in nodes for name in node.resources} - _BUILT_IN
    if others:
        yield remark(f"the nodes have the resources {', '.join(sorted(others)[:12])}")


def _shape(vnodes: list[PbsNode]) -> Shape:
    """Return cores, GPUs and memory [MiB] of a host, the sum of its vnodes."""
    cores = [node.ncpus for node in vnodes if node.ncpus]
    memory = [node.memory for node in vnodes if node.memory]
    total = sum(int(one) for one in memory)
    return sum(cores) or None, sum(node.ngpus for node in vnodes), total or None
