"""Lines `@hpct {json}`, printed by the reference workload and by anyone's script.

The key `event` says what the line is: `start` and `end` describe the run (global), `epoch` an
epoch (global, its number is the step), `step` a step (per rank). Without `event`, `step_time` and
`samples` are per rank if there is a `step`, and everything else is global. The key `scope`
overrides. Metrics are the names of `model.record.UNITS`, in those units; other keys, null and
values that are no finite numbers are ignored.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from hpc_train.model.record import UNITS, Scope
from hpc_train.records.parsers.base import Hit, LogText, Unreadable
from hpc_train.records.parsers.prefixes import line_head, peel

_LONGEST = 16_384
# Whole numbers beyond it do not fit a float.
_LARGEST = 2**1000
# Stops at `@` and `{`: where another rank writes into the line, its event is found next.
_EVENT = re.compile(rb"@hpct (\{[^{}@\r\n]{0,16384}\}?)")
_BODY = len(b"@hpct ")
_SCOPES: dict[str, Scope] = {"global": "global", "per_gpu": "per_gpu", "per_rank": "per_rank"}
_RANKS_OWN = frozenset({"step_time", "samples"})

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_scan = json.JSONDecoder().raw_decode


class Events:
    """Parser of `@hpct` lines."""

    literals: tuple[bytes, ...] = (b"@hpct {",)

    def parse(self, data: LogText, rank: int | None = None) -> Iterator[Hit | Unreadable]:
        """Yield the values of each event; an event that cannot be decoded is `Unreadable`."""
        done = 0
        for match in _EVENT.finditer(data):
            offset, end = match.span()
            if offset < done:
                continue
            event = _flat(match[1])
            if event is None:
                event, end = _nested(data, offset + _BODY)
            if event is None:
                yield Unreadable(offset)
                continue
            yield from _hits(event, offset, _rank(event, data, offset, done, rank))
            done = end


PARSER = Events()


def _flat(body: bytes) -> dict[str, Any] | None:
    if not body.endswith(b"}"):
        return None
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _nested(data: LogText, start: int) -> tuple[dict[str, Any] | None, int]:
    """Decode what the fast way cannot: braces or `@` in a string, nested values, NaN, bad UTF-8."""
    line = data[start : start + _LONGEST].partition(b"\n")[0]
    text = line.decode("utf-8", "surrogateescape")
    try:
        event, length = _scan(text)
    except (ValueError, RecursionError):
        return None, start
    return event, start + len(text[:length].encode("utf-8", "surrogateescape"))


def _rank(
    event: dict[str, Any], data: LogText, offset: int, floor: int, default: int | None
) -> int | None:
    stated = _whole(event.get("rank"))
    if stated is None:
        stated = peel(line_head(data, offset, floor)).rank
    return default if stated is None else stated


def _hits(event: dict[str, Any], offset: int, rank: int | None) -> Iterator[Hit]:
    kind = event.get("event")
    step = _step(event, kind)
    scope = _scope(event, kind)
    for metric, raw in event.items():
        # In an event of ours, `epoch` says where in the run it happened.
        if metric not in UNITS or (metric == "epoch" and kind is not None):
            continue
        value = _number(raw)
        if value is not None:
            yield Hit(offset, metric, value, scope or _free_scope(metric, step), step, rank)


def _step(event: dict[str, Any], kind: object) -> int | None:
    if kind in ("start", "end"):
        return None
    return _whole(event.get("epoch" if kind == "epoch" else "step"))


def _scope(event: dict[str, Any], kind: object) -> Scope | None:
    stated = event.get("scope")
    if isinstance(stated, str) and stated in _SCOPES:
        return _SCOPES[stated]
    if kind == "step":
        return "per_rank"
    return "global" if kind in ("start", "epoch", "end") else None


def _free_scope(metric: str, step: int | None) -> Scope:
    return "per_rank" if metric in _RANKS_OWN and step is not None else "global"


def _number(raw: object) -> float | None:
    if isinstance(raw, float):
        return raw if math.isfinite(raw) else None
    if isinstance(raw, int) and not isinstance(raw, bool) and abs(raw) < _LARGEST:
        return float(raw)
    return None


def _whole(raw: object) -> int | None:
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and raw >= 0 else None
