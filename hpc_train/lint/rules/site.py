"""Rules on the site: partitions and queues, limits, accounts and prohibitions of its profile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil
from typing import TYPE_CHECKING, Any

from hpc_train.base.errors import nearest
from hpc_train.base.regex import whole_match
from hpc_train.base.values import Severity, slurm_memory, slurm_seconds
from hpc_train.lint.directives import MARKER, Option, RequestedResources, is_placeholder
from hpc_train.lint.launches import LaunchCommand
from hpc_train.lint.pbs import PbsChunk, PbsRequest, walltime_seconds
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.sites.batch_system import find_batch_system

if TYPE_CHECKING:
    from hpc_train.plans.queue_limits import PartitionEntry, SizeName
    from hpc_train.sites.partition import Partition, Select
    from hpc_train.sites.profile import PbsDialect, SiteProfile

# `sites.partition.ANY`: only a script for a site needs that module.
_ANY = "*"
_GPU_OPTIONS = ("gpus-per-node", "gres", "gpus")


def known_partitions(site: SiteProfile) -> tuple[str, ...]:
    """Return the values of --partition that the profile names."""
    return tuple(word for one in site.partitions if (word := _word_of(one)) not in (None, _ANY))


def has_open_partitions(site: SiteProfile) -> bool:
    """Return whether the profile lists some partitions and allows any other."""
    return _ANY in map(_word_of, site.partitions)


def over_limits(
    site: SiteProfile, asked: RequestedResources, word: Callable[[str], str]
) -> Iterator[RuleHit]:
    """Yield the requests of a script that exceed the limits of its queue; `word` names a size."""
    # Without a site, a script needs neither profiles nor their limits.
    from hpc_train.plans.queue_limits import JobQueue, limits_on, qos_named

    entry = partition_of(site, asked)
    qos = qos_named(site, asked.value("qos"), entry[1].name if entry else None)
    queue = JobQueue(partition=entry, qos=qos)
    cores = (asked.tasks_per_node or 0) * (asked.cpus_per_task or 1)
    gpus = asked.nodes * asked.gpus_per_node if asked.nodes and asked.gpus_per_node else None
    found: list[tuple[tuple[str, ...], int, Any, str, str]] = []
    if entry is not None:
        partition = entry[1]
        memory, tasks = slurm_memory(asked.value("mem") or ""), ("ntasks-per-node", "cpus-per-task")
        of_node: tuple[tuple[tuple[str, ...], int | None, Any, str], ...] = (
            (_GPU_OPTIONS, asked.gpus_per_node, partition.gpus_per_node, ""),
            (tasks, cores, partition.cpus_per_node, f"{cores} cores a node"),
            (("mem",), memory, partition.mem_per_node, ""),
        )
        for options, wanted, most, shown in of_node:
            if wanted and most is not None and wanted > most:
                found.append((options, wanted, shown, partition.name, f"has at most {most}"))
    sizes: dict[SizeName, tuple[tuple[str, ...], int | None, str]] = {
        "nodes": (("nodes",), asked.nodes, ""),
        "gpus": (_GPU_OPTIONS, gpus, f"{gpus} GPUs on all nodes"),
        "time": (("time",), slurm_seconds(asked.value("time") or ""), ""),
    }
    for size, (options, wanted, shown) in sizes.items():
        for limit in limits_on(size, queue, asked.nodes) if wanted else ():
            if wanted and wanted > limit.value:
                most = " ".join(filter(None, (f"has at most {limit.value}", limit.note)))
                found.append((options, wanted, shown, limit.who, most))
    for options, wanted, shown, who, most in found:
        there = [name for name in options if asked.has(name)]
        size_text = shown or (asked.value(there[0]) if there else wanted)
        message = f"{' x '.join(map(word, there))}: {size_text}, but {who} {most}"
        yield RuleHit(asked.line(*options), message)


def partition_of(site: SiteProfile, asked: RequestedResources) -> PartitionEntry | None:
    """Return the most specific entry that matches the directives, else the catch-all entry."""
    entries = list(enumerate(site.partitions))
    found = [entry for entry in entries if entry[1].name != _ANY and _leads(entry[1], asked)]
    if not found:
        return next((entry for entry in entries if entry[1].name == _ANY), None)
    most = max(_words(entry.select) for _, entry in found)
    closest = [entry for entry in found if _words(entry[1].select) == most]
    return closest[0] if len(closest) == 1 else next((e for e in closest if e[1].default), None)


def _words(select: Select | None) -> int:
    words = (select.qos, select.constraint, select.account_suffix) if select else ()
    return sum(word is not None for word in words)


def _word_of(partition: Partition) -> str | None:
    """Return the value of --partition that selects an entry, if one does."""
    return partition.select.partition if partition.select else partition.name


def _leads(entry: Partition, asked: RequestedResources) -> bool:
    select, word, named = entry.select, _word_of(entry), asked.value("partition")
    if not (word == named if named else word is None or entry.default):
        return False
    if select is None:
        return True
    terms = set((select.constraint or "").split("&")) - {""}
    return (
        select.qos in (None, asked.value("qos"))
        and terms <= set((asked.value("constraint") or "").split("&"))
        and (asked.value("account") or "").endswith(select.account_suffix or "")
    )


_SIMILAR: Severity = "info"
# A bare srun also starts other launchers, and python is none.
_NAMED_LAUNCHERS = ("mpirun", "torchrun", "accelerate", "deepspeed")


def _at_slurm(
    check: Callable[[SiteProfile, RequestedResources], Iterator[RuleHit]],
) -> Callable[[Subject], Iterator[RuleHit]]:
    """Return the check of a script with directives of Slurm for a site that has Slurm."""

    def checked(subject: Subject) -> Iterator[RuleHit]:
        site, asked = subject.context.site, subject.script.asked
        if site and find_batch_system(site.scheduler).steps and asked.batch:
            yield from check(site, asked)

    return checked


@rule("HT701", "error", "unknown partition", advice="name one of the site's partitions")
@_at_slurm
def unknown_partition(site: SiteProfile, asked: RequestedResources) -> Iterator[RuleHit]:
    given = asked.value("partition")
    names = known_partitions(site)
    if not names or not given or "$" in given:
        return
    # The entries that a constraint or an account selects; Slurm's names of them are not known.
    others = tuple(one.name for one in site.partitions if _word_of(one) is None)
    if others:
        for name in given.split(","):
            if name in others and name not in names:
                message = f"jobs on {site.name} select {name} by constraint or account"
                advice = f"hpctrain site show {site.name} prints what selects it"
                line = asked.line("partition")
                yield RuleHit(line, message, advice=advice, severity=_SIMILAR)
        return
    is_open = has_open_partitions(site)
    for name in given.split(","):
        near = nearest(name, names)
        if name not in names and not is_placeholder(name) and (near or not is_open):
            message = f"{site.name} has no partition {name!r}{near}"
            advice = f"known: {', '.join(sorted(names))}"
            line, severity = asked.line("partition"), _SIMILAR if is_open else None
            yield RuleHit(line, message, advice=advice, severity=severity)


@rule(
    "HT702",
    "error",
    "request above a limit of the site",
    advice="request less, or choose a partition with higher limits",
)
@_at_slurm
def over_the_limit(site: SiteProfile, asked: RequestedResources) -> Iterator[RuleHit]:
    yield from over_limits(site, asked, lambda name: f"--{name}")


@rule(
    "HT703",
    "error",
    "launcher that the site forbids",
    advice="use one of the launchers that the profile allows",
)
def forbidden_launcher(subject: Subject) -> Iterator[RuleHit]:
    site = subject.context.site
    if site is None:
        return
    words = site.launchers
    others = [name for name in words.allowed if name not in (*words.forbidden, *words.warned)]
    advice = f"use {' or '.join(others)}" if others else None
    for launch in subject.script.launches:
        for name in _launchers(launch, site):
            if name in words.forbidden:
                message = f"{site.name} forbids {name}: {words.forbidden[name]}"
                yield RuleHit(launch.line, message, advice=advice)
            elif name in words.warned:
                message = f"{site.name} advises against {name}: {words.warned[name]}"
                yield RuleHit(launch.line, message, advice=advice, severity="warning")
            elif name in _NAMED_LAUNCHERS and name not in words.allowed:
                message = f"the profile of {site.name} does not offer {name}"
                yield RuleHit(launch.line, message, advice=advice, severity="warning")


def _launchers(launch: LaunchCommand, site: SiteProfile) -> tuple[str, ...]:
    """Return the launchers of a command; on PBS, an MPI may start the agents of another one."""
    program = launch.command.program.rpartition("/")[2]
    outer = program if program in site.launchers.allowed else launch.outer
    if site.pbs is not None and launch.starter in _NAMED_LAUNCHERS:
        return (launch.starter,)
    return tuple(dict.fromkeys((outer, launch.starter)))


@rule(
    "HT706",
    "warning",
    "GPUs requested with another option than the site's",
    advice="use the option of the site's profile",
)
@_at_slurm
def other_gpu_request(site: SiteProfile, asked: RequestedResources) -> Iterator[RuleHit]:
    ways = [name for name in ("gpus-per-node", "gpus", "gpus-per-task") if asked.has(name)]
    gres = "gpu" in (asked.value("gres") or "")
    if site.gpu_request == "gres" and ways and not gres:
        kind = "TYPE:" if site.gpu_request_typed else ""
        yield RuleHit(asked.line(*ways), f"{site.name} requests GPUs with --gres=gpu:{kind}N")
    if site.gpu_request == "none":
        for name in (*ways, *(["gres"] if gres else [])):
            message = f"--{name}: the partitions of {site.name} allocate GPUs without an option"
            yield RuleHit(asked.line(name), message, advice="leave the option out")


@rule(
    "HT707",
    "error",
    "option that the site requires is missing",
    advice="add the option",
)
@_at_slurm
def required_option(site: SiteProfile, asked: RequestedResources) -> Iterator[RuleHit]:
    wanted: dict[str, tuple[str, ...]] = {key: (key,) for key in site.required if key != "account"}
    if "mem" in wanted or site.mem_request == "required":
        wanted["mem"] = ("mem", "mem-per-cpu", "mem-per-gpu")
    for key, names in wanted.items():
        if not asked.has(*names):
            yield RuleHit(1, f"{site.name} requires --{key}")
    account = site.account.required or "account" in site.required
    if account and not asked.has("account"):
        advice = "add #SBATCH --account=NAME, or set SBATCH_ACCOUNT at submission"
        yield RuleHit(1, f"{site.name} requires --account", severity="warning", advice=advice)


@rule("HT708", "error", "option that the site forbids", advice="leave the option out")
@_at_slurm
def forbidden_option(site: SiteProfile, asked: RequestedResources) -> Iterator[RuleHit]:
    reasons = {name.lstrip("-"): why for name, why in site.forbidden.items()}
    names = ["cpus-per-task", "cpus-per-gpu"] * (site.cpu_request == "forbidden")
    names += ["mem", "mem-per-cpu", "mem-per-gpu"] * (site.mem_request == "forbidden")
    reasons = dict.fromkeys(names, "they come with the nodes, GPUs or cores") | reasons
    for name, why in reasons.items():
        if asked.has(name):
            yield RuleHit(asked.line(name), f"{site.name} refuses --{name}: {why}")


@rule(
    "HT709",
    "warning",
    "account that does not match the site's pattern",
    advice="use the name of your project's account",
)
@_at_slurm
def foreign_account(site: SiteProfile, asked: RequestedResources) -> Iterator[RuleHit]:
    pattern, name = site.account.pattern, asked.value("account")
    if not pattern or not name or "$" in name or is_placeholder(name):
        return
    if not whole_match(pattern, name, ignore_case=True):
        like = site.account.example or pattern
        message = f"account {name!r}, but the accounts of {site.name} are of the form {like}"
        yield RuleHit(asked.line("account"), message)


_TOTALS = ("ncpus", "ngpus", "mem")
# sbatch's names, which the limits of profiles have -> those of PBS.
_WORDS = {
    "nodes": "select",
    "time": "walltime",
    "gpus-per-node": "ngpus",
    "ntasks-per-node": "ncpus",
    "mem": "mem",
}


def _at_pbs(
    check: Callable[[SiteProfile, PbsDialect, PbsRequest], Iterator[RuleHit]],
) -> Callable[[Subject], Iterator[RuleHit]]:
    """Return the check of a script with directives of PBS for a site that has PBS."""

    def checked(subject: Subject) -> Iterator[RuleHit]:
        site, request = subject.context.site, subject.script.pbs
        if site and site.pbs and request.options:
            yield from check(site, site.pbs, request)

    return checked


@rule("HT921", "error", "unknown queue", advice="name one of the site's queues")
@_at_pbs
def unknown_queue(site: SiteProfile, pbs: PbsDialect, request: PbsRequest) -> Iterator[RuleHit]:
    option = request.option("q")
    if option is None or "$" in option.value or is_placeholder(option.value):
        return
    names = known_partitions(site)
    queue = queue_name(option.value)
    if names and queue and queue not in names and not has_open_partitions(site):
        message = f"{site.name} has no queue {queue!r}{nearest(queue, names)}"
        advice = f"known: {', '.join(sorted(names))}"
        yield RuleHit(option.line, message, advice=advice)


@rule(
    "HT922", "error", "request above a limit of the queue", advice="request less, or another queue"
)
@_at_pbs
def over_the_limit_of_a_queue(
    site: SiteProfile, pbs: PbsDialect, request: PbsRequest
) -> Iterator[RuleHit]:
    yield from over_limits(site, asked_at_site(site, request), lambda name: _word(name, request))


def _word(name: str, request: PbsRequest) -> str:
    """Return PBS's name of a size, as the script may write it."""
    select, older = request.resource("select"), request.resource("nodes")
    if name == "nodes" and select is None:
        return "nodes"
    return "ppn" if name == "ntasks-per-node" and select is None and older else _WORDS[name]


@rule(
    "HT927",
    "error",
    "script of another scheduler than the site's",
    advice="hpctrain render writes the directives of the site from a job file",
)
def other_scheduler(subject: Subject) -> Iterator[RuleHit]:
    script, site = subject.script, subject.context.site
    if site is None or bool(script.directives) == bool(script.pbs):
        return
    batch = find_batch_system(site.scheduler)
    marker = batch.prefix.partition(" ")[0]
    own = MARKER if script.directives else "#PBS"
    if marker and marker != own:
        options = script.directives or script.pbs.options
        first = options[0].line if options else 1
        yield RuleHit(first, f"{own} lines, but {site.name} has {batch.title} and reads {marker}")


@rule("HT923", "warning", "no project", advice="add the project")
@_at_pbs
def no_project(site: SiteProfile, pbs: PbsDialect, request: PbsRequest) -> Iterator[RuleHit]:
    wanted = pbs.project
    required = site.account.required or "account" in site.required
    if not required or request.option(wanted[1:]):
        return
    other = request.option("P" if wanted == "-A" else "A")
    message = f"{site.name} requires a project"
    if other is not None:
        message = f"-{other.name} {other.value}: the project of {site.name} is {wanted}"
    yield RuleHit(other.line if other else 1, message, advice=f"write #PBS {wanted} NAME")


@rule("HT924", "error", "queue or resource that the site requires is missing", advice="add it")
@_at_pbs
def required_resource(site: SiteProfile, pbs: PbsDialect, request: PbsRequest) -> Iterator[RuleHit]:
    chosen = site.partition_choice == "job" or "partition" in site.required
    if chosen and not request.option("q"):
        names = ", ".join(sorted(known_partitions(site)))
        advice = f"known: {names}" if names else None
        yield RuleHit(1, f"{site.name} requires a queue: -q", advice=advice)
    if "time" in site.required and request.resource("walltime") is None:
        yield RuleHit(1, f"{site.name} requires -l walltime")
    chunks = any("mem" in chunk.resources for chunk in request.chunks)
    if site.mem_request == "required" and not chunks and request.resource("mem") is None:
        yield RuleHit(1, f"{site.name} requires mem")
    for text in str(site.directives.get("l", "")).split(","):
        if text and request.resource(text.partition("=")[0]) is None:
            yield RuleHit(1, f"the jobs of {site.name} have -l {text}", severity="warning")


def asked_at_site(site: SiteProfile, request: PbsRequest) -> RequestedResources:
    """Return what a script requests of a site, under the names that limits of profiles have."""
    queue, time = request.option("q"), request.resource("walltime")
    project = request.option(site.pbs.project[1:] if site.pbs else "A")
    sized = request.resource("select") or request.resource("nodes")
    nodes: int | None = None
    cores: int | None = None
    gpus: int | None = None
    memory: str | None = None
    if sized is not None:
        chunk = request.chunks[0] if len(request.chunks) == 1 else None
        older = chunk is not None and "ppn" in chunk.resources
        nodes, cores = request.nodes, chunk.number("ppn" if older else "ncpus") if chunk else None
        gpus = chunk.number("gpus") if chunk and older else request.gpus_per_node
        memory = chunk.resources.get("mem") if chunk else None
    elif totals := {name: one for name in _TOTALS if (one := request.resource(name))}:
        sized = next(iter(totals.values()))
        # A job with totals has them as a chunk has them.
        whole = PbsChunk(
            count=1, resources={k: v.value.strip() for k, v in totals.items()}, text=""
        )
        cores, gpus = whole.number("ncpus"), whole.number("ngpus")
        nodes = _nodes_for(site, queue_name(queue.value) if queue else "", cores, gpus)
        cores, gpus = (ceil(one / nodes) if one and nodes else None for one in (cores, gpus))
        memory = whole.resources.get("mem") if nodes == 1 else None
    seconds = walltime_seconds(time.value) if time else None
    minutes = (seconds or 0) // 60
    clock = f"{minutes // 60}:{minutes % 60:02d}:{(seconds or 0) % 60:02d}"
    values = (
        ("partition", queue and queue_name(queue.value), queue),
        ("account", project and project.value, project),
        ("nodes", nodes, sized),
        ("time", None if seconds is None else clock, time),
        ("gpus-per-node", gpus, sized),
        ("ntasks-per-node", cores, sized),
        # `480gb` is `480G`.
        ("mem", memory.lower().removesuffix("b").upper() if memory else None, sized),
    )
    options = {
        name: Option(name=name, value=str(value), line=given.line if given else 1, spelled=name)
        for name, value, given in values
        if value is not None
    }
    return RequestedResources(
        batch=True, options=options, nodes=nodes, tasks_per_node=cores, gpus_per_node=gpus
    )


def _nodes_for(site: SiteProfile, queue: str, cores: int | None, gpus: int | None) -> int | None:
    """Return the nodes that hold totals: of a site with chunks one, else as many as needed."""
    if site.pbs is None or site.pbs.shape == "select":
        return 1
    named = [one for one in site.partitions if (one.name == queue if queue else one.default)]
    if len(named) != 1:
        return None
    pairs = ((cores, named[0].cpus_per_node), (gpus, named[0].gpus_per_node))
    return max((ceil(asked / each) for asked, each in pairs if asked and each), default=None)


def queue_name(destination: str) -> str:
    """Return the queue of a destination: `queue`, `queue@server` or `@server`."""
    return destination.partition("@")[0]
