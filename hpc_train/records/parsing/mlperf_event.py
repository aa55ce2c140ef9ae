"""A line of an MLPerf log -> its events, in the notation of any round; GPUs of the system."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from hpc_train.records.parsing.log_parser import Unreadable
from hpc_train.records.parsing.printed_numbers import finite, scan, scan_object

_MARK = ":::SYSJSON "
# `2xXE8545x4A100-SXM-40GB`; and DGX with eight GPUs, which those before the A100 did not all have.
_NAMED = re.compile(
    r"(?P<nodes>\d{1,5})x(?:.{1,60}?x(?P<gpus>\d{1,2})x?(?:A|B|GB|H|L|V|MI)\d{2,3}"
    r"|(?:NVIDIA )?DGX[ -]?(?P<dgx>[AHB]\d00))"
)
_DGX = 8
_MOST = 10**6
_START = re.compile(
    r":::ML(?:"
    r"LOG +(?P<object>\{)"
    r"|L +(?P<mll_s>\d{1,12}(?:\.\d{0,9})?) +(?P<mll_key>\w{1,64}): *(?=\{)"
    r"|Pv0\.[5-7](?:\.\d{1,3})? +(?P<task>\S{1,64}) +(?P<old_s>\d{1,12}(?:\.\d{0,9})?)"
    r" +\([^()]{1,512}\) +(?P<old_key>\w{1,64})(?P<old_value>: *)?"
    r")"
)
# Locating an error in JSON takes as long as reading all text before it.
_BROKEN = 64


class _Object(msgspec.Struct, gc=False):
    key: str
    time_ms: Any
    value: Any = None
    metadata: Any = None


# Three times as fast as `json`, which is used where this one fails: text after the object,
# NaN, a key that is missing.
_decode = msgspec.json.Decoder(_Object).decode


class Event(NamedTuple):
    """What happened, and when [ms since 1970]; `task` is the benchmark where the line names it."""

    key: str
    time_ms: float
    value: object
    metadata: Mapping[str, object]
    task: str = ""


def sole_event(text: str) -> Event | None:
    """Return the one event that ends a line; None if that needs the full parser."""
    _, mark, event = text.partition(":::")
    return _decoded(event[6:]) if mark and event.startswith("MLLOG {") else None


def events_in(text: str) -> Iterator[Event | Unreadable]:
    """Yield every event on a line, whatever stands before, between and after them."""
    done = broken = 0
    for match in _START.finditer(text):
        if match.start() < done:
            continue
        event, done = _event(match, text)
        yield event or Unreadable()
        broken += event is None
        if broken > _BROKEN:
            return


def _event(match: re.Match[str], text: str) -> tuple[Event | None, int]:
    if match["object"]:
        return _of_object(text, match.start("object"))
    if match["mll_key"]:
        return _of_pair(match["mll_key"], float(match["mll_s"]) * 1000, text, match.end())
    time_ms = float(match["old_s"]) * 1000
    if match["old_value"] is None:
        return Event(match["old_key"], time_ms, None, {}, match["task"]), match.end()
    event, end = _of_pair(match["old_key"], time_ms, text, match.end())
    return event and event._replace(task=match["task"]), end


def _of_object(text: str, start: int) -> tuple[Event | None, int]:
    if event := _decoded(text[start:]):
        return event, len(text)
    found = scan_object(text, start)
    if found is None:
        return None, start
    body, end = found
    key, time_ms = body.get("key"), finite(body.get("time_ms"))
    if not isinstance(key, str) or time_ms is None:
        return None, end
    return Event(key, time_ms, body.get("value"), _mapping(body.get("metadata"))), end


def _decoded(text: str) -> Event | None:
    """Return the event of a text that is one object and nothing else."""
    with suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        whole = _decode(text)
        time_ms = finite(whole.time_ms)
        if time_ms is not None:
            return Event(whole.key, time_ms, whole.value, _mapping(whole.metadata))
    return None


def _of_pair(key: str, time_ms: float, text: str, start: int) -> tuple[Event | None, int]:
    """Read `key: value`; a mapping as value holds value and metadata, at one level or two."""
    try:
        value, end = scan(text, start)
    except (ValueError, RecursionError):
        return None, start
    if not isinstance(value, dict):
        return Event(key, time_ms, value, {}), end
    metadata = {**value, **_mapping(value.get("metadata"))}
    return Event(key, time_ms, value.get("value"), metadata), end


def _mapping(raw: object) -> dict[str, object]:
    return raw if isinstance(raw, dict) else {}


def gpus_of_system(text: str) -> int | None:
    """Return the accelerators of all nodes, by the description in a line `:::SYSJSON {..}`."""
    start = text.find(_MARK)
    found = scan_object(text, start + len(_MARK)) if start >= 0 else None
    if found is None:
        return None
    nodes, each = (
        _count(found[0].get(key)) for key in ("number_of_nodes", "accelerators_per_node")
    )
    return _sane(nodes * each) if nodes and each else None


def gpus_of_platform(name: str) -> int | None:
    """Return the GPUs of a machine whose name contains their number: `8xNVIDIA DGX H100`."""
    match = _NAMED.match(name)
    if match is None:
        return None
    return _sane(int(match["nodes"]) * (int(match["gpus"]) if match["gpus"] else _DGX))


def _count(value: object) -> int | None:
    """Return a count, written as a number or as text."""
    text = str(value) if isinstance(value, str | int) else ""
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 8 else None


def _sane(gpus: int) -> int | None:
    return gpus if 0 < gpus <= _MOST else None
