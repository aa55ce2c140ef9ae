"""The request of a script for PBS, in the names and sizes that the limits of a profile have."""

from __future__ import annotations

from math import ceil

from hpc_train.lint.option_parser import Option
from hpc_train.lint.pbs_request import PbsRequest
from hpc_train.lint.requested_resources import RequestedResources
from hpc_train.model.partition import Partition
from hpc_train.model.site import SiteProfile
from hpc_train.model.value import Value

_TOTALS = ("ncpus", "ngpus", "mem")


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
