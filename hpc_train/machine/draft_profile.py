"""A live Slurm with the hardware of its nodes, or a live PBS -> the text of a profile."""

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import get_args

import msgspec

from hpc_train.base.data_folders import schema_comment
from hpc_train.base.registry import BUILT_IN
from hpc_train.base.values import Duration
from hpc_train.machine.hardware import Guess, Hardware, Software, gpu_order, guess
from hpc_train.machine.probe_job import NodeKind, NodeShape, kinds, shape
from hpc_train.pbs.live_pbs import (
    LivePbs,
    PbsNode,
    PbsQueue,
    PbsQueueLimits,
    all_nodes,
    destinations,
    queue_limits,
)
from hpc_train.plans.launchers.base import find_launcher
from hpc_train.sites.partition import Arch
from hpc_train.sites.profile import SCHEMA
from hpc_train.slurm.live_cluster import Cluster, LiveNode, LivePartition, LiveQos, Mpi

YamlScalar = str | int | bool
Item = YamlScalar | tuple[YamlScalar, ...] | None
GUESSED = "guessed"
# More GPUs of a node than a job may request.
MOST_GPUS = 64
_PLAIN = re.compile(
    r"^(?:(--|/)?[A-Za-z][A-Za-z0-9_./=-]*"
    r"|(\d+[dhms])+|\d+[MG]|20\d\d-\d\d-\d\d)"
)
# YAML 1.1 parses these texts as other types.
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def line(key: str, value: Item, note: str = "") -> str:
    """Return `key: value  # note`."""
    return f"{key}: {_text(value)}{_comment(note)}"


def known(**values: Item) -> Iterator[str]:
    """Yield a line for each value that is neither None nor empty."""
    yield from (line(key, value) for key, value in values.items() if value not in (None, "", ()))


def question(key: str, example: str, ask: str) -> str:
    """Return a key of unknown value, as a comment with a question."""
    return f"# {key}: {example}{_comment(ask)}"


def remark(words: str) -> str:
    """Return a comment."""
    return _comment(words).strip()


def block(key: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield a mapping or a list below a key; nothing if it is empty."""
    inside = [f"  {one}" for one in lines]
    yield from (f"{key}:", *inside) if inside else ()


def entry(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a mapping as those of an item of a list."""
    yield from (f"{'  ' if number else '- '}{one}" for number, one in enumerate(lines))


def joined(*parts: Iterable[str]) -> str:
    """Return the text of a file with an empty line between its parts."""
    return "\n\n".join("\n".join(part) for part in map(tuple, parts) if part) + "\n"


def heading(
    name: str, date: str, description: str, source: str, said: Iterable[str] = ()
) -> Iterator[str]:
    """Yield the lines up to the scheduler; `said` are problems of the commands."""
    yield schema_comment("site")
    yield remark(
        "A draft of `hpctrain site init`: check every line, answer the questions, then run"
    )
    yield remark(f"hpctrain site show {name}")
    yield from map(remark, said)
    yield line("schema", SCHEMA)
    yield line("name", name)
    yield line("description", description, "which system, where, what hardware?")
    yield question("operator", "…", "which institution operates it?")
    yield question("url", "https://…", "address of its documentation?")
    yield line("verified_on", date)
    rows = (line("what", source), line("date", date), line("confidence", "medium"))
    yield from block("sources", entry(rows))


def common_arch(arches: Iterable[str]) -> str:
    """Return the architecture of all nodes; empty if they differ, or hpctrain has no such word."""
    found = set(arches)
    return found.pop() if len(found) == 1 and found <= set(get_args(Arch)) else ""


def _text(value: Item) -> str:
    """Write a value so that YAML parses it unchanged; a time as in input files: 2d, 1h30m."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, Duration):
        days, rest = divmod(int(value), 86400)
        parts = ((days, "d"), (rest // 3600, "h"), (rest % 3600 // 60, "m"), (rest % 60, "s"))
        return "".join(f"{number}{unit}" for number, unit in parts if number)
    plain = str(value)
    if isinstance(value, int) or (_PLAIN.fullmatch(plain) and plain.lower() not in _WORDS):
        return plain
    return msgspec.json.encode(plain).decode()


def _comment(words: str) -> str:
    """Return text as a comment on one line."""
    plain = "".join(c if c.isprintable() else "?" for c in words)
    return f"  # {plain}" if plain else ""


def draft_slurm(
    name: str,
    date: str,
    cluster: Cluster,
    hardware: Mapping[NodeShape, Hardware],
    programs: Collection[str] = (),
) -> str:
    """Return the text of the profile; unknown values are questions.

    `hardware` is that of probed nodes, `programs` are those of this login node.
    """
    nodes = tuple(hardware.values())
    # The profile is mainly for nodes with GPUs.
    main = next((node for node in nodes if node.gpus), next(iter(nodes), None))
    network = guess(main) if main else None
    default = any(partition.default for partition in cluster.partitions)
    choice = line("partition_choice", "job", "Slurm has no default partition")
    return joined(
        _head(name, date, cluster, nodes, main),
        block("launchers", _launchers(cluster.mpi, main, programs)),
        partition_lines(cluster, hardware, network),
        () if default else (choice,),
        qos_lines(cluster),
        _requests(cluster),
        _network(main, network),
        _around(cluster, main),
    )


def _head(
    name: str, date: str, cluster: Cluster, nodes: Iterable[Hardware], main: Hardware | None
) -> Iterator[str]:
    asked = ", ".join(node.host for node in nodes)
    yield from heading(
        name,
        date,
        f"Slurm cluster {cluster.name}",
        f"scontrol and sinfo of {cluster.name}{f', and a job on {asked}' if asked else ''}",
        (*cluster.unread, *(main.unread if main else ())),
    )
    yield from block("detect", [line("clusters", (cluster.name,))])
    yield line("scheduler", "slurm")
    if version := ".".join(cluster.version.split(".")[:4]):
        yield f'slurm: "{version}"'
    if conf := os.environ.get("SLURM_CONF"):
        yield line("slurm_conf", conf, "from $SLURM_CONF")
    yield from known(arch=common_arch(node.arch for node in cluster.nodes))


def _launchers(mpi: Mpi, main: Hardware | None, here: Collection[str]) -> Iterator[str]:
    programs = main.software.programs if main else here
    needed = launcher_programs()
    there = [program for program in needed.values() if program in programs]
    allowed = (name for name, program in needed.items() if program in ("", *there))
    where = f"on the PATH of {main.host}" if main else "on the PATH here; also on the nodes?"
    chosen = f"{GUESSED}: hpctrain's choice; which one does the site recommend?"
    yield line("default", "torchrun", chosen)
    found = f"{', '.join(there)} {'is' if len(there) == 1 else 'are'} {where}" if there else ""
    yield line("allowed", tuple(allowed), found)
    yield question("forbidden", "{mpirun: reason}", "which launchers does the site forbid?")
    yield from _mpi(mpi)
    yield from known(openmpi=main.software.mpirun if main else "")


def launcher_programs() -> dict[str, str]:
    """Return each launcher with the program that must be on the PATH.

    It is empty if the launcher is part of Slurm or of the Python environment of the user.
    """
    return {name: find_launcher(name).program for name in BUILT_IN["launchers"]}


def _mpi(mpi: Mpi) -> Iterator[str]:
    """State the default of the cluster; without one, the type depends on the MPI of the user."""
    there = [name for name in mpi.plugins if name not in (*mpi.broken, "none")]
    listed = f"srun --mpi=list: {', '.join(mpi.plugins)}"
    if mpi.default not in ("", "none") and (mpi.default in there or not mpi.plugins):
        yield line("mpi", mpi.default, "MpiDefault of slurm.conf")
    elif there:
        ask = f"{listed}; MpiDefault is {mpi.default or 'unknown'}: which one do ranks of MPI need?"
        yield question("mpi", there[0], ask)


def _requests(cluster: Cluster) -> Iterator[str]:
    select = cluster.limits.select
    if any(node.gpus for node in cluster.nodes):
        why = f"Slurm counts GPUs with {select or 'an unknown SelectType'}"
        option = "gpus-per-node" if "cons" in select else "gres"
        yield line("gpu_request", option, f"{GUESSED}: {why}")
    elif not cluster.nodes:
        yield question("gpu_request", "gpus-per-node", "which option requests GPUs?")
    else:
        yield line("gpu_request", "none", f"{GUESSED}: Slurm counts no GPUs on any node")
    if any(len(node.gpu_kinds) > 1 for node in cluster.nodes):
        yield line("gpu_request_typed", True, f"{GUESSED}: some nodes have several types")
    yield question("mem_request", "allowed", "must a job request memory, or must it not?")
    accounts = ", ".join(dict.fromkeys(one.account for one in cluster.associations))
    yours = f"yours: {accounts}; " if accounts else ""
    yield question("account", "{required: true}", f"{yours}must a job state its account?")
    submit = [a.max_submit_jobs for a in cluster.associations if a.max_submit_jobs]
    yield from block(
        "limits",
        known(
            max_array_size=cluster.limits.max_array_size,
            max_submit_jobs=min(submit, default=None),
        ),
    )


def _network(main: Hardware | None, network: Guess | None) -> Iterator[str]:
    if main is None or network is None or network.fabric is None:
        example = "{fabric: infiniband, interfaces: [ib0]}"
        yield question("network", example, "which network connects the nodes?")
        yield remark("`hpctrain site init --probe` runs a job on a node of each kind")
        return
    rows = [line("fabric", network.fabric, f"{GUESSED}: {network.why}")]
    if network.interfaces:
        others = f"; also up: {', '.join(network.others)}" if network.others else ""
        rows.append(line("interfaces", network.interfaces, f"{GUESSED}{others}"))
    if network.hcas:
        rows.append(line("hcas", network.hcas, f"{GUESSED}: those with an active port"))
    rows += known(gpus="amd" if any(gpu.vendor == "amd" for gpu in main.gpus) else "")
    yield from block("network", rows)


def _around(cluster: Cluster, main: Hardware | None) -> Iterator[str]:
    """Yield containers, modules, storage, internet access and requeue."""
    software = main.software if main else Software()
    runtimes = ("apptainer", "singularity", "podman-hpc", "shifter")
    there = (
        ["pyxis"] if software.pyxis else [name for name in runtimes if name in software.programs]
    )
    if there:
        yield from block("containers", [line("runtime", there[0], GUESSED)])
    elif main is None:
        ask = "which container runtime is on the nodes?"
        yield question("containers", "{runtime: apptainer}", ask)
    system = f" ({software.modules})" if software.modules else ""
    yield question("modules", "[cuda/12.4]", f"which modules does a job need?{system}")
    yield question("storage", "{scratch: {path: $SCRATCH}}", "which file systems can jobs use?")
    yield question("internet", '{access: "no"}', "do compute nodes have internet access?")
    if cluster.limits.requeue is not None:
        yield from block("lifecycle", [line("requeue", cluster.limits.requeue, "JobRequeue")])


_ENDED = ("REQUEUE", "CANCEL", "SUSPEND")


def partition_lines(
    cluster: Cluster,
    hardware: Mapping[NodeShape, Hardware],
    network: Guess | None,
) -> Iterator[str]:
    """Yield `partitions:` with values of Slurm and the probed nodes."""
    rows: list[str] = []
    for partition in cluster.partitions:
        lines = [line("name", partition.name), *_limits(cluster, partition)]
        if found := kinds(cluster, partition.name):
            node = found[0].nodes[0]
            machine = hardware.get(shape(node))
            lines += (*_nodes(found), *_gpus(node, machine), *_nics(machine, network))
        rows += entry((*lines, *_remarks(partition)))
    yield from block("partitions", rows)


def qos_lines(cluster: Cluster) -> Iterator[str]:
    """Yield `qos:` with those that the user may use."""
    mine = {name for one in cluster.associations for name in one.qos}
    defaults = {one.default_qos for one in cluster.associations if one.default_qos}
    rows: list[str] = []
    for qos in cluster.qos:
        if not mine or qos.name in mine:
            rows += entry(_qos(cluster, qos, defaults == {qos.name}))
    yield from block("qos", rows)


def _qos(cluster: Cluster, qos: LiveQos, default: bool) -> Iterator[str]:
    allowing = tuple(
        one.name for one in cluster.partitions if not one.allowed_qos or qos.name in one.allowed_qos
    )
    return known(
        name=qos.name,
        default=default or None,
        partitions=allowing if len(allowing) < len(cluster.partitions) else (),
        max_time=qos.max_time or None,
        max_nodes=qos.max_nodes or None,
        max_gpus=qos.max_gpus or None,
        max_jobs=qos.max_jobs or None,
    )


def _limits(cluster: Cluster, partition: LivePartition) -> Iterator[str]:
    nodes, least = partition.nodes, partition.min_nodes or 0
    longest, default = partition.max_time, partition.default_time
    yield from known(
        default=partition.default or None,
        nodes=nodes or None,
        max_nodes=(partition.largest or nodes) or None,
        min_nodes=least if 1 < least <= nodes else None,
    )
    yield line("max_time", longest) if longest else remark("no time limit")
    # Jobs share nodes only where Slurm allocates their parts.
    known_to_share = partition.shared and "cons" in cluster.limits.select
    yield from known(
        default_time=default if default and (longest is None or default <= longest) else None,
        shared=partition.shared if known_to_share or partition.shared is False else None,
    )


def _nodes(found: tuple[NodeKind, ...]) -> Iterator[str]:
    node, note = found[0].nodes[0], ""
    if len(found) > 1:
        note = f"{GUESSED}: {len(found[0].nodes)} nodes are like this"
    if node.cpus:
        yield line("cpus_per_node", node.cpus, note)
    reserved = node.all_cpus - node.cpus
    yield from known(
        reserved_cpus=reserved if reserved > 0 else None,
        threads_per_core=node.threads if node.threads > 1 else None,
    )
    if node.memory:
        yield line("mem_per_node", node.memory, note)
    for kind in found[1:]:
        other = kind.nodes[0]
        gres = ", ".join(f"{g.count} {g.kind or g.name}" for g in other.gres)
        words = "; ".join(filter(None, (f"{other.cpus} CPUs", str(other.memory or ""), gres)))
        yield remark(f"{len(kind.nodes)} nodes like {other.name} differ: {words}")
    if features := sorted({name for kind in found for n in kind.nodes for name in n.features}):
        yield remark(f"features for a job's constraint: {', '.join(features[:20])}")


def _gpus(node: LiveNode, machine: Hardware | None) -> Iterator[str]:
    seen = machine.gpus if machine else ()
    count = node.gpus or len(seen)
    if count > MOST_GPUS:
        yield remark(f"Slurm counts {count} GPUs on a node, more than hpctrain supports")
        return
    yield line("gpus_per_node", count)
    if not count:
        return
    if node.gpu_kinds:
        more = f"{GUESSED}: also {', '.join(node.gpu_kinds[1:])}" if node.gpu_kinds[1:] else ""
        yield line("gpu_type", node.gpu_kinds[0], more)
    else:
        yield question("gpu_type", "a100", "which types does --gres=gpu:TYPE:N accept here?")
    yield from known(gpu_model=seen[0].name if seen else "")
    if machine is not None and len(seen) == count:
        if order := gpu_order(machine):
            yield line("gpu_order", order, f"{GUESSED}: from the cores that the driver reports")


def _nics(machine: Hardware | None, network: Guess | None) -> Iterator[str]:
    if machine is None:
        return
    found = guess(machine)
    count = len(found.hcas) or (len(found.interfaces) if found.fabric == "slingshot" else 0)
    yield from known(nics_per_node=count or None, nic_gbps=found.gbps)
    if network is None or found.fabric != network.fabric:
        return
    for key in ("interfaces", "hcas"):
        own = getattr(found, key)
        if own and own != getattr(network, key):
            yield line(key, own, GUESSED)


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


_EXCLUSIVE = {"force_excl", "force_exclhost", "default_excl", "default_exclhost"}
_GPU_KEYS = ("gpu_model", "gputype", "gpu_type", "accelerator_model")
PbsShape = tuple[int | None, int, int | None]


def draft_pbs(name: str, date: str, pbs: LivePbs, programs: Collection[str]) -> str:
    """Return the text of the profile; unknown values are questions.

    `programs` are those that `query_pbs.starters` finds here.
    """
    version = f" {pbs.version}" if pbs.version else ""
    source = f"qstat -Bf, qstat -Qf and pbsnodes -a of {pbs.name}, PBS{version}"
    head = heading(name, date, f"The PBS server {pbs.name}", source)
    return joined(
        (*head, line("scheduler", "pbs")),
        _pbs_jobs(pbs),
        block("launchers", _pbs_launchers(programs)),
        _pbs_queues(pbs),
    )


def _pbs_jobs(pbs: LivePbs) -> Iterator[str]:
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


def _pbs_launchers(programs: Collection[str]) -> Iterator[str]:
    yield line("default", "torchrun")
    mpi = [one for one in ("mpiexec", "mpirun") if one in programs]
    note = f"{GUESSED}: mpiexec is that of Cray PALS" if "mpiexec" in mpi else ""
    yield line("allowed", ("torchrun", *mpi, "spawn", "single"), note)
    if "pbs_tmrsh" not in programs:
        yield remark("no pbs_tmrsh here; pbs.starter may be pals or openmpi")
    yield question("setup", "[source ~/venv/bin/activate]", "which environment has torch?")


def _pbs_queues(pbs: LivePbs) -> Iterator[str]:
    rows: list[str] = []
    for queue in pbs.shown:
        rows += entry(_pbs_queue(pbs, queue))
    closed = [queue.name for queue in pbs.queues if not queue.open]
    if closed:
        rows.append(remark(f"closed queues: {', '.join(closed)}"))
    yield from block("partitions", rows)


def _pbs_queue(pbs: LivePbs, queue: PbsQueue) -> Iterator[str]:
    targets = ", ".join(one.name for one in destinations(pbs, queue))
    yield from known(
        name=queue.name,
        default=queue.name == pbs.default_queue or None,
        description=f"routes jobs to {targets}" if targets else "",
    )
    yield from _pbs_limits(queue_limits(pbs, queue))
    yield from _pbs_nodes(all_nodes(pbs, queue), without_gpus=queue.most.get("ngpus") == "0")


def _pbs_limits(limits: PbsQueueLimits) -> Iterator[str]:
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


def _pbs_nodes(nodes: Sequence[PbsNode], *, without_gpus: bool) -> Iterator[str]:
    """Yield what a host has: that of most hosts, and the others as remarks."""
    if not nodes:
        yield question("cpus_per_node", "64", "pbsnodes shows no node of this queue: cores?")
        return
    hosts: dict[str, list[PbsNode]] = {}
    for node in nodes:
        hosts.setdefault(node.host, []).append(node)
    shapes = Counter(_pbs_shape(own) for own in hosts.values())
    (cores, gpus, memory), count = shapes.most_common(1)[0]
    note = f"{GUESSED}: {count} of {len(hosts)} nodes are like this" if len(shapes) > 1 else ""
    if cores:
        yield line("cpus_per_node", cores, note)
    if gpus <= MOST_GPUS:
        yield line("gpus_per_node", 0 if without_gpus else gpus, note)
    models = {node.resources[key] for node in nodes for key in _GPU_KEYS if key in node.resources}
    if gpus and len(models) == 1 and not without_gpus:
        yield line("gpu_model", models.pop())
    if memory:
        yield line("mem_per_node", f"{memory}M", note)
    yield from _other_nodes(hosts, shapes)


def _other_nodes(hosts: Mapping[str, list[PbsNode]], shapes: Counter[PbsShape]) -> Iterator[str]:
    for (cores, gpus, memory), count in shapes.most_common()[1:5]:
        plural = "s" * (count > 1)
        yield remark(f"{count} node{plural}: {cores} cores, {gpus} GPUs, {memory} MiB")
    nodes = [node for own in hosts.values() for node in own]
    if len(hosts) < len(nodes):
        yield remark("a node has several vnodes; place=scatter gives one chunk to each node")
    if {node.sharing for node in nodes} <= _EXCLUSIVE:
        yield line("shared", False)


def _pbs_shape(vnodes: list[PbsNode]) -> PbsShape:
    """Return cores, GPUs and memory [MiB] of a host, the sum of its vnodes."""
    cores = [node.ncpus for node in vnodes if node.ncpus]
    memory = [node.memory for node in vnodes if node.memory]
    total = sum(int(one) for one in memory)
    return sum(cores) or None, sum(node.ngpus for node in vnodes), total or None
