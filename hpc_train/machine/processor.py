"""`lscpu`, as JSON or as text -> Processor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from hpc_train.base.processes import whole
from hpc_train.machine.hardware import Processor

_NUMA = re.compile(r"NUMA node([0-9]{1,6}) CPU\(s\)")
_FIRST = re.compile("[0-9]{1,6}")


def processor(text: str) -> Processor | None:
    """Read the output of lscpu; None for any other text."""
    fields = lscpu_fields(text)
    cpus = whole(fields.get("CPU(s)"))
    if cpus is None:
        return None
    numa = [
        (int(match[1]), int(first[0]))
        for key, value in fields.items()
        if (match := _NUMA.fullmatch(key)) and (first := _FIRST.match(value))
    ]
    return Processor(
        model=fields.get("Model name", ""),
        cpus=cpus,
        sockets=whole(fields.get("Socket(s)")),
        cores_per_socket=whole(fields.get("Core(s) per socket")),
        threads_per_core=whole(fields.get("Thread(s) per core")),
        numa=tuple(sorted(numa)),
    )


def lscpu_fields(text: str) -> dict[str, str]:
    """Return the fields of lscpu, from JSON or text; empty for any other text."""
    return dict(_json_fields(text)) or dict(_text_fields(text))


def _json_fields(text: str) -> Iterator[tuple[str, str]]:
    try:
        document: Any = msgspec.json.decode(text.encode())
    except msgspec.DecodeError:
        return
    if isinstance(document, dict):
        yield from _walk(document.get("lscpu"))


def _walk(items: Any) -> Iterator[tuple[str, str]]:
    """Yield all fields; util-linux 2.38 and later nest some of them."""
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict):
            yield str(item.get("field", "")).rstrip(":"), str(item.get("data") or "")
            yield from _walk(item.get("children"))


def _text_fields(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            yield key.strip(), value.strip()
