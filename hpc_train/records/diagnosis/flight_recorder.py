"""Dumps of torch's flight recorder: the last collectives of each rank, written after a timeout.

torch writes one file for each rank, a pickle of dicts, lists, texts and numbers, or JSON
(`FlightRecorder.hpp` of torch 2.13, version 2.10 of the format; `torchfrtrace` reads the same).
A pickle may name any function, so that one which names any is refused.
"""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from hpc_train.errors import LogParseError
from hpc_train.model.value import Value
from hpc_train.regularfile import read_regular

# Of `$HPCTRAIN_LOG_DIR/nccl_trace_rank_`, to which torch adds the rank.
PATTERN = "nccl_trace_rank_*[0-9]"
_RANK = re.compile(r"_(\d{1,7})\Z")
# 2000 operations with their stacks are a few MB.
_MOST_BYTES = 64 << 20
_TORCH = ("/torch/", "/site-packages/")


class Operation(Value, frozen=True, kw_only=True):
    """A collective that a rank enqueued: `sizes` are the shapes of its inputs.

    `open` is whether it had neither ended nor been retired. `place` is where the program called it.
    """

    group: str
    number: int
    name: str
    sizes: str
    open: bool
    place: str


class FlightDump(Value, frozen=True, kw_only=True):
    """What one rank did last: its collectives, in order; the last number that it enqueued by group.

    `groups` are the process groups by name, as their descriptions and global ranks. `exchanging` is
    whether a send or receive of the rank had not ended; these have numbers of their own.
    """

    rank: int
    source: str
    operations: tuple[Operation, ...]
    enqueued: dict[str, int]
    groups: dict[str, tuple[str, tuple[int, ...]]]
    exchanging: bool = False


def read_dump(path: Path, source: str) -> FlightDump:
    """Read the dump of one rank; `source` is its name in evidence.

    Raises:
        LogParseError: it is no such dump, too large, or a pickle that names a function; or it
        cannot be read.
    """
    number = _RANK.search(path.name)
    if number is None:
        raise LogParseError(f"{source}: no dump of torch's flight recorder: its name has no rank")
    try:
        content = read_regular(path, _MOST_BYTES)
    except OSError as error:
        raise LogParseError(f"{source}: it cannot be read: {error.strerror}") from error
    try:
        return _dump(_decoded(content), int(number[1]), source)
    except _FunctionError as error:
        raise LogParseError(f"{source}: no dump of torch's flight recorder: {error}") from error
    except _DAMAGED as error:
        raise LogParseError(
            f"{source}: this dump of torch's flight recorder is damaged, or its rank was ended "
            "before all of it was written; it is left out"
        ) from error


# What a damaged pickle or JSON raises, and values of another form.
_DAMAGED = (
    pickle.UnpicklingError,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)


class _FunctionError(pickle.UnpicklingError):
    """A pickle that names a function."""


class _Plain(pickle.Unpickler):
    """Makes dicts, lists, tuples, texts and numbers, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        raise _FunctionError(f"it names {module}.{name}, which is not loaded")


def _decoded(content: bytes) -> Mapping[str, Any]:
    found = json.loads(content) if content[:1] == b"{" else _Plain(BytesIO(content)).load()
    if not isinstance(found, dict):
        raise TypeError("it is no mapping")
    return found


def _dump(found: Mapping[str, Any], rank: int, source: str) -> FlightDump:
    entries = found.get("entries", ())
    operations = tuple(_operation(entry) for entry in entries if not entry.get("is_p2p"))
    enqueued: dict[str, int] = {}
    for one in operations:
        enqueued[one.group] = max(one.number, enqueued.get(one.group, 0))
    return FlightDump(
        rank=rank,
        source=source,
        operations=operations,
        enqueued=enqueued,
        groups={
            str(name): (str(group["desc"]), _ranks(group["ranks"]))
            for name, group in found["pg_config"].items()
        },
        exchanging=any(_is_open(entry) for entry in entries if entry.get("is_p2p")),
    )


def _operation(entry: Mapping[str, Any]) -> Operation:
    return Operation(
        group=str(entry["process_group"][0]),
        number=int(entry["collective_seq_id"]),
        name=str(entry["profiling_name"]).rpartition(":")[2],
        sizes=", ".join("x".join(map(str, size)) or "1" for size in entry["input_sizes"]),
        open=_is_open(entry),
        place=_place(entry.get("frames", ())),
    )


def _is_open(entry: Mapping[str, Any]) -> bool:
    return bool(entry["state"] != "completed" and not entry["retired"])


def _place(frames: Sequence[Mapping[str, Any]]) -> str:
    """Return the innermost frame of the program: `train.py:42`."""
    for frame in frames:
        file = str(frame["filename"])
        if not any(folder in file for folder in _TORCH):
            return f"{Path(file).name}:{frame['line']}"
    return ""


def _ranks(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in re.findall(r"\d{1,7}", str(text)))
