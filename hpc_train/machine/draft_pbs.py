"""A live PBS -> the text of a profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from hpc_train.machine.draft_profile import (
    GUESSED,
    MOST_GPUS,
    block,
    entry,
    heading,
    joined,
    known,
    line,
    question,
    remark,
)
from hpc_train.pbs.live_pbs import (
    LivePbs,
    PbsNode,
    PbsQueue,
    PbsQueueLimits,
    all_nodes,
    destinations,
    queue_limits,
)

_EXCLUSIVE = {"force_excl", "force_exclhost", "default_excl", "default_exclhost"}
_MODELS = ("gpu_model", "gputype", "gpu_type", "accelerator_model")
Shape = tuple[int | None, int, int | None]


def draft_pbs(name: str, date: str, pbs: LivePbs, programs: Collection[str]) -> str:
    """Return the text of the profile; unknown values are questions.

    `programs` are those that `query_pbs.starters` finds here.
    """
    version = f" {pbs.version}" if pbs.version else ""
    source = f"qstat -Bf, qstat -Qf and pbsnodes -a of {pbs.name}, PBS{version}"
    head = heading(name, date, f"The PBS server {pbs.name}", source)
    return joined(
        (*head, line("scheduler", "pbs")),
        _jobs(pbs),
        block("launchers", _launchers(programs)),
        _partitions(pbs),
    )


def _jobs(pbs: LivePbs) -> Iterator[str]:
    systems = {node.resources["system"] for node in pbs.nodes if "system" in node.resources}
    chunk = "{system: " + min(systems, default="") + "}"
    rows = (
        line("shape", "select", f"{GUESSED}: or flat, if the site's examples have no select"),
        question("project", "-P", "is a project -A, the default, or -P?"),
        *([question("chunk", chunk, "does select name the system?")] if systems else []),
    )
    yield from block("pbs", rows)
    yield question("account", "{required: true}", "must a job name a project?")
    files = pbs.available.get("valid_filesystems")
    if files:
        yield question("directives", "{l: filesystems=NAME}", f"which of {files}?")
    if pbs.history is None:
        yield remark("the server keeps no finished jobs: their state is that of the run's files")
    else:
        yield remark(f"the server keeps finished jobs for {pbs.history}")


def _launchers(programs: Collection[str]) -> Iterator[str]:
    yield line("default", "torchrun")
    mpi = [one for one in ("mpiexec", "mpirun") if one in programs]
    note = f"{GUESSED}: mpiexec is that of Cray PALS" if "mpiexec" in mpi else ""
    yield line("allowed", ("torchrun", *mpi, "spawn", "single"), note)
    if "pbs_tmrsh" not in programs:
        yield remark("no pbs_tmrsh here; pbs.starter may be pals or openmpi")
    yield question("setup", "[source ~/venv/bin/activate]", "which environment has torch?")


def _partitions(pbs: LivePbs) -> Iterator[str]:
    rows: list[str] = []
    for queue in pbs.shown:
        rows += entry(_queue(pbs, queue))
    closed = [queue.name for queue in pbs.queues if not queue.open]
    if closed:
        rows.append(remark(f"closed queues: {', '.join(closed)}"))
    yield from block("partitions", rows)


def _queue(pbs: LivePbs, queue: PbsQueue) -> Iterator[str]:
    targets = ", ".join(one.name for one in destinations(pbs, queue))
    yield from known(
        name=queue.name,
        default=queue.name == pbs.default_queue or None,
        description=f"routes jobs to {targets}" if targets else "",
    )
    yield from _limits(queue_limits(pbs, queue))
    yield from _nodes(all_nodes(pbs, queue), without_gpus=queue.most.get("ngpus") == "0")


def _limits(limits: PbsQueueLimits) -> Iterator[str]:
    yield from known(nodes=limits.hosts or None)
    if limits.max_nodes:
        above = limits.max_nodes != limits.stated_nodes
        note = f"the limit of the queue is {limits.stated_nodes}" if above else ""
        yield line("max_nodes", limits.max_nodes, note)
    least = limits.min_nodes or 1
    if least > 1:
        fits = not limits.hosts or least <= limits.hosts
        yield line("min_nodes", least) if fits else remark(f"at least {least} nodes of a job")
    yield from known(max_gpus=limits.max_gpus or None, min_time=limits.min_time)
    longest = limits.max_time
    yield line("max_time", longest) if longest else remark("no time limit is stated")
    yield from known(default_time=limits.default_time)


def _nodes(nodes: Sequence[PbsNode], *, without_gpus: bool) -> Iterator[str]:
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
    if gpus <= MOST_GPUS:
        yield line("gpus_per_node", 0 if without_gpus else gpus, note)
    models = {node.resources[key] for node in nodes for key in _MODELS if key in node.resources}
    if gpus and len(models) == 1 and not without_gpus:
        yield line("gpu_model", models.pop())
    if memory:
        yield line("mem_per_node", f"{memory}M", note)
    yield from _remarks(hosts, shapes)


def _remarks(hosts: Mapping[str, list[PbsNode]], shapes: Counter[Shape]) -> Iterator[str]:
    for (cores, gpus, memory), count in shapes.most_common()[1:5]:
        plural = "s" * (count > 1)
        yield remark(f"{count} node{plural}: {cores} cores, {gpus} GPUs, {memory} MiB")
    nodes = [node for own in hosts.values() for node in own]
    if len(hosts) < len(nodes):
        yield remark("a node has several vnodes; place=scatter gives one chunk to each node")
    if {node.sharing for node in nodes} <= _EXCLUSIVE:
        yield line("shared", False)


def _shape(vnodes: list[PbsNode]) -> Shape:
    """Return cores, GPUs and memory [MiB] of a host, the sum of its vnodes."""
    cores = [node.ncpus for node in vnodes if node.ncpus]
    memory = [node.memory for node in vnodes if node.memory]
    total = sum(int(one) for one in memory)
    return sum(cores) or None, sum(node.ngpus for node in vnodes), total or None
