"""What the `#PBS` lines of a script request: chunks or totals, ranks, GPUs and time.

Source: OpenPBS 23.06, pbs_resources(7B).
"""

from __future__ import annotations

import re

from hpc_train.lint.pbs_directives import PbsDirectives
from hpc_train.model.value import Value

_COUNT = re.compile(r"(\d{1,7})(?::|\Z)")
_CLOCK = re.compile(r"(?:(?:(\d{1,5}):)?(\d{1,5}):)?(\d{1,9})(?:\.\d{1,9})?")
CHUNK_RESOURCES = (
    "ncpus",
    "ngpus",
    "mpiprocs",
    "ompthreads",
    "mem",
    "vmem",
    "host",
    "vnode",
    "arch",
    "accelerator",
    "accelerator_memory",
    "accelerator_model",
    "naccelerators",
    "nchunk",
)


class PbsResource(Value, frozen=True, kw_only=True):
    """A resource of `-l`: `walltime=1:00:00`; `value` is None without `=`."""

    name: str
    value: str | None
    line: int


class PbsChunk(Value, frozen=True, kw_only=True):
    """A part of `select`: how many, None if unknown, and what each of them has."""

    count: int | None
    resources: dict[str, str]
    text: str

    def number(self, name: str) -> int | None:
        """Return a resource as a number; None if it is absent or unknown."""
        text = self.resources.get(name, "")
        return int(text) if re.fullmatch(r"\d{1,7}", text) else None


class PbsRequest(Value, frozen=True, kw_only=True):
    """The directives of a script for PBS, and the sizes that follow from them."""

    directives: PbsDirectives
    resources: tuple[PbsResource, ...]
    chunks: tuple[PbsChunk, ...]

    def resource(self, name: str) -> PbsResource | None:
        """Return the resource of a name that takes effect."""
        found = [one for one in self.resources if one.name == name]
        return found[-1] if found else None

    @property
    def nodes(self) -> int | None:
        """Return the number of chunks, or that of `-l nodes=N`; None if it is unknown."""
        counts = [chunk.count for chunk in self.chunks]
        return sum(filter(None, counts)) if counts and None not in counts else None

    @property
    def ranks(self) -> int | None:
        """Return the number of slots that MPI finds; None if it is unknown."""
        slots = [_slots(chunk) for chunk in self.chunks]
        return sum(filter(None, slots)) if slots and None not in slots else None

    @property
    def gpus_per_node(self) -> int | None:
        """Return the GPUs of a chunk, if all chunks have as many and the job says so."""
        found = {chunk.number("ngpus") for chunk in self.chunks}
        return found.pop() if len(found) == 1 else None

    @property
    def walltime_s(self) -> int | None:
        """Return the time limit [s]; None without one that PBS reads."""
        found = self.resource("walltime")
        return walltime_seconds(found.value or "") if found else None


def read_pbs_request(directives: PbsDirectives) -> PbsRequest | None:
    """Return the request of a script; None without a `#PBS` line."""
    if not (directives.options or directives.stray or directives.late):
        return None
    resources = tuple(
        PbsResource(name=name.strip(), value=value if sign else None, line=option.line)
        for option in directives.all("l")
        for name, sign, value in (part.partition("=") for part in option.value.split(","))
    )
    request = PbsRequest(directives=directives, resources=resources, chunks=())
    select, nodes = request.resource("select"), request.resource("nodes")
    text = (select or nodes).value if select or nodes else None  # type: ignore[union-attr]
    chunks = tuple(_chunk(part) for part in (text or "").split("+") if part)
    return PbsRequest(directives=directives, resources=resources, chunks=chunks)


def walltime_seconds(text: str) -> int | None:
    """Return a time as PBS reads it, [[HH:]MM:]SS, in seconds."""
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        return None
    hours, minutes, seconds = (int(group or 0) for group in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def _chunk(text: str) -> PbsChunk:
    """Read `2:ncpus=8:ngpus=4`, or `2:ppn=8` of the older form."""
    match = _COUNT.match(text)
    rest = text[match.end() :] if match else text
    pairs = [word.partition("=") for word in rest.split(":") if word]
    count = int(match[1]) if match else 1 if text[:1].isalpha() and "=" in text else None
    return PbsChunk(count=count, resources={name: value for name, _, value in pairs}, text=text)


def _slots(chunk: PbsChunk) -> int | None:
    """PBS gives MPI one slot for each chunk that does not say otherwise."""
    name = "ppn" if "ppn" in chunk.resources else "mpiprocs"
    each = chunk.number(name) if name in chunk.resources else 1
    return chunk.count * each if chunk.count is not None and each is not None else None
