"""Chunks of jobs -> nodes, first fit in the order of submission; or why a job waits."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hpc_train.lab.pbs.job import PbsJob
from hpc_train.lab.pbs.resource_list import Chunk
from hpc_train.model.value import Value


class NodeSize(Value, frozen=True, kw_only=True):
    """What each node has; memory in bytes."""

    nodes: int = 2
    ncpus: int = 8
    ngpus: int = 0
    mem: int = 8 << 30


class Placement(Value, frozen=True, kw_only=True):
    """The node of each chunk; empty with the reason why a job waits."""

    nodes: tuple[int, ...] = ()
    comment: str = ""


def place(job: PbsJob, running: Collection[PbsJob], size: NodeSize) -> Placement:
    """Place a job beside those that are running."""
    alone = _fit(job, (), size)
    if isinstance(alone, str):
        return Placement(comment=f"Can Never Run: {alone}")
    found = _fit(job, running, size)
    if isinstance(found, str):
        return Placement(comment=f"Not Running: {found}")
    return Placement(nodes=found)


def _fit(job: PbsJob, others: Collection[PbsJob], size: NodeSize) -> tuple[int, ...] | str:
    free = [_free(number, others, size) for number in range(size.nodes)]
    total = list(free)
    word, _, sharing = job.request.place.partition(":")
    alone = "excl" in (word, sharing)
    chosen: list[int] = []
    for chunk in job.request.chunks:
        node = next(
            (
                number
                for number, rest in enumerate(free)
                if _holds(rest, chunk)
                and not (word in ("scatter", "vscatter") and number in chosen)
                and not (word == "pack" and chosen and number not in chosen)
                and not (alone and total[number] != _whole(size))
            ),
            None,
        )
        if node is None:
            return _lack(job, chunk, free, size)
        chosen.append(node)
        free[node] = _less(free[node], chunk)
    return tuple(chosen)


def _lack(job: PbsJob, chunk: Chunk, free: Sequence[Chunk], size: NodeSize) -> str:
    for name in ("ncpus", "ngpus"):
        asked, most = getattr(chunk, name), max(getattr(rest, name) for rest in free)
        if asked > most:
            there = getattr(_whole(size), name)
            return f"Insufficient amount of resource: {name} (R: {asked} A: {most} T: {there})"
    if chunk.mem > max(rest.mem for rest in free):
        return f"Insufficient amount of resource: mem (R: {chunk.mem >> 10}kb)"
    if len(job.request.chunks) > size.nodes:
        return "Not enough total nodes available"
    return "Not enough free nodes available"


def _free(number: int, others: Collection[PbsJob], size: NodeSize) -> Chunk:
    rest = _whole(size)
    for job in others:
        for node, chunk in job.placed:
            if node != number:
                continue
            rest = Chunk(ncpus=0) if "excl" in job.request.place else _less(rest, chunk)
    return rest


def _whole(size: NodeSize) -> Chunk:
    return Chunk(ncpus=size.ncpus, ngpus=size.ngpus, mem=size.mem)


def _holds(rest: Chunk, chunk: Chunk) -> bool:
    return rest.ncpus >= chunk.ncpus and rest.ngpus >= chunk.ngpus and rest.mem >= chunk.mem


def _less(rest: Chunk, chunk: Chunk) -> Chunk:
    return Chunk(
        ncpus=rest.ncpus - chunk.ncpus, ngpus=rest.ngpus - chunk.ngpus, mem=rest.mem - chunk.mem
    )
