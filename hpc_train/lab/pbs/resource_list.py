"""The list of -l -> chunks, place and time, or the refusal of a real qsub."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from hpc_train.lab.pbs.command_answer import CommandAnswer
from hpc_train.model.value import Value

_PLACES = re.compile(r"(free|pack|scatter|vscatter)?:?(excl|shared|exclhost)?")
_CLOCK = re.compile(r"(?:(?:(\d{1,5}):)?(\d{1,5}):)?(\d{1,9})")
_COUNTED = ("ncpus", "ngpus", "mpiprocs", "ompthreads")
_SIZE = re.compile(r"(\d{1,12})(b|kb|mb|gb|tb)?", re.IGNORECASE)
_BYTES = {"": 1, "b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}
_CHUNK = re.compile(r"(?:(\d{1,5}):?)?(.*)", re.DOTALL)


class RefusedError(Exception):
    """qsub refuses a request."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.answer = CommandAnswer(code=code, errors=f"qsub: {message}\n")


class Chunk(Value, frozen=True, kw_only=True):
    """What a job requests of one node; memory in bytes."""

    ncpus: int = 1
    ngpus: int = 0
    mem: int = 0
    mpiprocs: int = 0
    ompthreads: int = 0


def read_resources(lists: Sequence[str]) -> dict[str, str]:
    """Return the resources of all lists of -l; the last one of a name takes precedence.

    Raises:
        RefusedError: as for a real qsub.
    """
    found: dict[str, str] = {}
    for text in lists:
        for part in text.split(","):
            name, sign, value = part.partition("=")
            if not sign or not value:
                raise RefusedError(2, "illegal -l value")
            if name not in (*_COUNTED, "select", "place", "walltime", "mem"):
                raise RefusedError(187, f"Unknown resource: {name}")
            # The command line comes last, and takes precedence.
            found[name] = value
    beside = [name for name in found if name in (*_COUNTED, "mem")]
    if "select" in found and beside:
        raise RefusedError(
            2, f'"-lresource=" cannot be used with "select" or "place", resource is: {beside[0]}'
        )
    return found


def read_chunks(resources: Mapping[str, str]) -> tuple[Chunk, ...]:
    """Return the chunks of `select`, or the one of a flat request.

    Raises:
        RefusedError: as for a real qsub.
    """
    text = resources.get("select")
    if text is None:
        flat = {name: resources[name] for name in (*_COUNTED, "mem") if name in resources}
        return (_chunk(flat),)
    chunks: list[Chunk] = []
    for part in text.split("+"):
        match = _CHUNK.fullmatch(part)
        count, words = (match[1] or "1", match[2]) if match else ("0", "")
        pairs = [word.partition("=") for word in words.split(":") if word]
        if not all(sign and value for _, sign, value in pairs):
            raise RefusedError(166, "Illegal attribute or resource value Resource_List.select")
        chunks += [_chunk({name: value for name, _, value in pairs})] * int(count)
    if not chunks:
        raise RefusedError(166, "Illegal attribute or resource value Resource_List.select")
    return tuple(chunks)


def _chunk(words: Mapping[str, str]) -> Chunk:
    counts = {}
    for name, value in words.items():
        if name not in (*_COUNTED, "mem"):
            raise RefusedError(187, f"Unknown resource: {name}")
        size = _SIZE.fullmatch(value) if name == "mem" else None
        if size is not None:
            counts[name] = int(size[1]) * _BYTES[(size[2] or "").lower()]
        elif name != "mem" and value.isascii() and value.isdecimal():
            counts[name] = int(value)
        else:
            raise RefusedError(166, f"Illegal attribute or resource value {name}")
    return msgspec.convert(counts, Chunk)


def read_place(resources: Mapping[str, str]) -> str:
    """Return where the chunks lie: `free` for chunks, `pack` for a flat request.

    Raises:
        RefusedError: as for a real qsub.
    """
    place = resources.get("place", "free" if "select" in resources else "pack")
    if not _PLACES.fullmatch(place):
        raise RefusedError(166, "Illegal attribute or resource value Resource_List.place")
    return place


def read_walltime(resources: Mapping[str, str]) -> int | None:
    """Return the time limit [s]; None without one.

    Raises:
        RefusedError: as for a real qsub.
    """
    if "walltime" not in resources:
        return None
    match = _CLOCK.fullmatch(resources["walltime"])
    if match is None:
        raise RefusedError(166, "Illegal attribute or resource value Resource_List.walltime")
    hours, minutes, seconds = (int(group or 0) for group in match.groups())
    return hours * 3600 + minutes * 60 + seconds
