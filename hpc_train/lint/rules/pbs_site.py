"""Rules on a job of PBS and the profile of its site: queues, limits, projects, shapes."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from hpc_train.errors import nearest
from hpc_train.lint.directives import MARKER
from hpc_train.lint.option_parser import Option
from hpc_train.lint.partition_match import excesses, has_open_partitions, known_partitions, queue_of
from hpc_train.lint.pbs_request import PbsRequest
from hpc_train.lint.placeholders import is_placeholder
from hpc_train.lint.requested_resources import RequestedResources
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.model.partition import Partition
from hpc_train.model.site import SiteProfile
from hpc_train.model.value import Value
from hpc_train.registry import find_batch_system

_TOTALS = ("ncpus", "ngpus", "mem")
# sbatch's names, which the limits of profiles have -> those of PBS.
_WORDS = {
    "nodes": "select",
    "time": "walltime",
    "gpus-per-node": "ngpus",
    "ntasks-per-node": "ncpus",
    "mem": "mem",
}


def _at_site(subject: Subject) -> tuple[SiteProfile, PbsRequest] | None:
    site, request = subject.context.site, subject.script.pbs
    if site is None or site.pbs is None or request is None or not request.directives.options:
        return None
    return site, request


@rule(
    "HT921",
    "error",
    "unknown queue",
    why="qsub refuses a job for a queue that does not exist (`Unknown queue`).",
    advice="name one of the site's queues",
)
def unknown_queue(subject: Subject) -> Iterator[RuleHit]:
    there = _at_site(subject)
    option = there[1].directives.last("q") if there else None
    if there is None or option is None or "$" in option.value or is_placeholder(option.value):
        return
    names = known_partitions(there[0])
    queue = destination_queue(option.value)
    if names and queue and queue not in names and not has_open_partitions(there[0]):
        message = f"{there[0].name} has no queue {queue!r}{nearest(queue, names)}"
        advice = f"known: {', '.join(sorted(names))}"
        yield RuleHit(line=option.line, message=message, advice=advice)


@rule(
    "HT922",
    "error",
    "request above a limit of the queue",
    why="PBS refuses a job that requests more nodes, GPUs, cores or time than its queue allows, or "
    "lets it wait forever (`Can Never Run`).",
    advice="request less, or another queue",
)
def over_the_limit(subject: Subject) -> Iterator[RuleHit]:
    there = _at_site(subject)
    if there is None:
        return
    site, request = there
    asked = asked_at_site(site, request)
    for excess in excesses(asked, queue_of(site, asked)):
        names = [name for name in excess.options if asked.has(name)]
        words = [_word(name, request) for name in names]
        shown = excess.shown or (asked.value(names[0]) if names else excess.wanted)
        limit = " ".join(filter(None, (f"has at most {excess.most}", excess.note)))
        message = f"{' x '.join(words)}: {shown}, but {excess.who} {limit}"
        yield RuleHit(line=asked.line(*excess.options), message=message)


def _word(name: str, request: PbsRequest) -> str:
    """Return PBS's name of a size, as the script may write it."""
    select, older = request.resource("select"), request.resource("nodes")
    if name == "nodes" and select is None:
        return "nodes"
    return "ppn" if name == "ntasks-per-node" and select is None and older else _WORDS[name]


@rule(
    "HT926",
    "error",
    "no queue",
    why="The site has no queue for jobs without -q, so that qsub refuses them.",
    advice="add #PBS -q with a queue of the site",
)
def no_queue(subject: Subject) -> Iterator[RuleHit]:
    there = _at_site(subject)
    if there is None or there[1].directives.last("q"):
        return
    site = there[0]
    if site.partition_choice == "job" or "partition" in site.required:
        names = ", ".join(sorted(known_partitions(site)))
        advice = f"known: {names}" if names else None
        yield RuleHit(line=1, message=f"{site.name} requires a queue: -q", advice=advice)


@rule(
    "HT927",
    "error",
    "script of another scheduler than the site's",
    why="The command of the site's scheduler ignores the directives, and the job runs with "
    "defaults.",
    advice="hpctrain render writes the directives of the site from a job file",
)
def other_scheduler(subject: Subject) -> Iterator[RuleHit]:
    script, site = subject.script, subject.context.site
    if site is None or bool(script.directives) == (script.pbs is not None):
        return
    batch = find_batch_system(site.scheduler)
    marker = batch.prefix.partition(" ")[0]
    own = MARKER if script.directives else "#PBS"
    if marker and marker != own:
        first = script.directives[0].line if script.directives else _first_line(script.pbs)
        message = f"{own} lines, but {site.name} has {batch.title} and reads {marker}"
        yield RuleHit(line=first, message=message)


def _first_line(request: PbsRequest | None) -> int:
    options = request.directives.options if request else ()
    return options[0].line if options else 1


@rule(
    "HT923",
    "warning",
    "no project",
    why="The site refuses jobs without a project. Sites differ in the option: -A, or -P.",
    advice="add the project",
)
def no_project(subject: Subject) -> Iterator[RuleHit]:
    there = _at_site(subject)
    if there is None or there[0].pbs is None:
        return
    site, request = there
    wanted = there[0].pbs.project
    required = site.account.required or "account" in site.required
    if not required or request.directives.last(wanted[1:]):
        return
    other = request.directives.last("P" if wanted == "-A" else "A")
    message = f"{site.name} requires a project"
    if other is not None:
        message = f"-{other.letter} {other.value}: the project of {site.name} is {wanted}"
    yield RuleHit(
        line=other.line if other else 1, message=message, advice=f"write #PBS {wanted} NAME"
    )


@rule(
    "HT924",
    "error",
    "resource that the site requires is missing",
    why="The site refuses jobs without it, or gives them a small default.",
    advice="add the resource",
)
def required_resource(subject: Subject) -> Iterator[RuleHit]:
    there = _at_site(subject)
    if there is None:
        return
    site, request = there
    if "time" in site.required and request.resource("walltime") is None:
        yield RuleHit(line=1, message=f"{site.name} requires -l walltime")
    chunks = any("mem" in chunk.resources for chunk in request.chunks)
    if site.mem_request == "required" and not chunks and request.resource("mem") is None:
        yield RuleHit(line=1, message=f"{site.name} requires mem")
    for text in str(site.directives.get("l", "")).split(","):
        if text and request.resource(text.partition("=")[0]) is None:
            message = f"the jobs of {site.name} have -l {text}"
            yield RuleHit(line=1, message=message, severity="warning")


@rule(
    "HT925",
    "warning",
    "request of another form than the site's",
    why="A site with totals (`-l ncpus=96`) does not place chunks as select says, and one with "
    "chunks may put totals onto one node.",
    advice="write the request as the site's own examples do",
)
def other_shape(subject: Subject) -> Iterator[RuleHit]:
    there = _at_site(subject)
    if there is None or there[0].pbs is None:
        return
    site, request = there
    select = request.resource("select")
    totals = [one for name in _TOTALS if (one := request.resource(name)) is not None]
    if there[0].pbs.shape == "flat" and select is not None:
        message = f"{site.name} takes totals: -l ncpus=…, -l ngpus=…, -l mem=…"
        yield RuleHit(line=select.line, message=message)
    elif there[0].pbs.shape == "select" and select is None and totals:
        message = f"{site.name} takes chunks: -l select=N:ncpus=…"
        yield RuleHit(line=totals[0].line, message=message)


class PbsSizes(Value, frozen=True, kw_only=True):
    """Nodes, and what each of them gives; None if it is unknown. `line` has the request."""

    line: int = 1
    nodes: int | None = None
    cores: int | None = None
    gpus: int | None = None
    memory: str | None = None


def asked_at_site(site: SiteProfile, request: PbsRequest) -> RequestedResources:
    """Return what a script requests of a site, under the names that limits of profiles have."""
    sizes = _sizes(site, request)
    time = request.resource("walltime")
    found: dict[str, tuple[object, int] | None] = {
        "partition": _queue(request),
        "account": _option(request, site.pbs.project[1:] if site.pbs else "A"),
        "nodes": (sizes.nodes, sizes.line),
        "time": (_clock(request.walltime_s), time.line) if time else None,
        "gpus-per-node": (sizes.gpus, sizes.line),
        "ntasks-per-node": (sizes.cores, sizes.line),
        "mem": (sizes.memory, sizes.line),
    }
    options = {
        name: Option(name=name, value=str(pair[0]), line=pair[1], spelled=name)
        for name, pair in found.items()
        if pair is not None and pair[0] is not None
    }
    return RequestedResources(
        batch=True,
        options=options,
        nodes=sizes.nodes,
        tasks_per_node=sizes.cores,
        gpus_per_node=sizes.gpus,
    )


def _sizes(site: SiteProfile, request: PbsRequest) -> PbsSizes:
    chunked = request.resource("select") or request.resource("nodes")
    if chunked is None:
        return _of_totals(site, request)
    chunk = request.chunks[0] if len(request.chunks) == 1 else None
    older = chunk is not None and "ppn" in chunk.resources
    return PbsSizes(
        line=chunked.line,
        nodes=request.nodes,
        cores=chunk.number("ppn" if older else "ncpus") if chunk else None,
        gpus=chunk.number("gpus") if chunk and older else request.gpus_per_node,
        memory=_memory(chunk.resources.get("mem") if chunk else None),
    )


def _of_totals(site: SiteProfile, request: PbsRequest) -> PbsSizes:
    """Return the nodes that hold the totals: of a site with chunks one, else as many as needed."""
    given = [one for name in _TOTALS if (one := request.resource(name)) is not None]
    cores, gpus = _number(request, "ncpus"), _number(request, "ngpus")
    if not given:
        return PbsSizes()
    nodes = _nodes(site, request, cores, gpus)
    memory = request.resource("mem")
    return PbsSizes(
        line=given[0].line,
        nodes=nodes,
        cores=ceil(cores / nodes) if cores and nodes else None,
        gpus=ceil(gpus / nodes) if gpus and nodes else None,
        memory=_memory(memory.value) if memory and nodes == 1 else None,
    )


def _nodes(
    site: SiteProfile, request: PbsRequest, cores: int | None, gpus: int | None
) -> int | None:
    if site.pbs is None or site.pbs.shape == "select":
        return 1
    queue = _queue(request)
    partition = _partition(site, queue[0] if queue else "")
    if partition is None:
        return None
    pairs = ((cores, partition.cpus_per_node), (gpus, partition.gpus_per_node))
    needed = [ceil(asked / each) for asked, each in pairs if asked and each]
    return max(needed, default=None)


def _partition(site: SiteProfile, queue: str) -> Partition | None:
    named = [one for one in site.partitions if (one.name == queue if queue else one.default)]
    return named[0] if len(named) == 1 else None


def destination_queue(destination: str) -> str:
    """Return the queue of a destination: `queue`, `queue@server` or `@server`."""
    return destination.partition("@")[0]


def _number(request: PbsRequest, name: str) -> int | None:
    found = request.resource(name)
    text = (found.value or "") if found else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 8 else None


def _queue(request: PbsRequest) -> tuple[str, int] | None:
    option = _option(request, "q")
    return (destination_queue(option[0]), option[1]) if option else None


def _option(request: PbsRequest, letter: str) -> tuple[str, int] | None:
    option = request.directives.last(letter)
    return (option.value, option.line) if option else None


def _clock(seconds: int | None) -> str | None:
    if seconds is None:
        return None
    return f"{seconds // 3600}:{seconds % 3600 // 60:02d}:{seconds % 60:02d}"


def _memory(text: str | None) -> str | None:
    """Return `480gb` as `480G`."""
    return text.lower().removesuffix("b").upper() if text else None
