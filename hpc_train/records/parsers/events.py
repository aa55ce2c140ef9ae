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
from hpc_train.records.parsers.prefixes import rank_before
from hpc_train.records.parsers.step_event import step_event, step_hits

_LONGEST = 16_384
# Stops at `@` and `{`: where another rank writes into the line, its event is found next.
_EVENT = re.compile(rb"@hpct (\{[^{}@\r\n]{0,16384}\}?)")
_BODY = len(b"@hpct ")
_SCOPES: dict[str, Scope] = {"global": "global", "per_gpu": "per_gpu", "per_rank": "per_rank"}
_RANKS_OWN = frozenset({"step_time", "samples"})
_FREE_METRICS = frozenset(UNITS)
_METRICS = _FREE_METRICS - {"epoch"}
# The events of the workload: the key that holds the step, and the scope.
_KINDS: dict[str, tuple[str | None, Scope | None]] = {
    "start": (None, "global"),
    "step": ("step", "per_rank"),
    "epoch": ("epoch", "global"),
    "end": (None, "global"),
}
_FREE: tuple[str | None, Scope | None] = ("step", None)

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
            step = step_event(match[1])
            if step is not None:
                yield from step_hits(step, offset, _rank(step.rank, data, offset, done, rank))
                done = end
                continue
            event = _flat(match[1])
            if event is None:
                event, end = _nested(data, offset + _BODY)
            if event is None:
                yield Unreadable(offset)
                continue
            stated = _whole(event.get("rank"))
            yield from _hits(event, offset, _rank(stated, data, offset, done, rank))
            if any(key in _METRICS and _number(raw) is None for key, raw in event.items()):
                yield Unreadable(offset)
            done = end


# Beyond this a step or rank is no number of anything, and tables hold 64 bits.
_MOST = 10**15
PARSER = Events()


def _flat(body: bytes) -> dict[str, Any] | None:
    if not body.endswith(b"}"):
        return None
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
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
    stated: int | None, data: LogText, offset: int, floor: int, default: int | None
) -> int | None:
    if stated is None:
        stated = rank_before(data, offset, floor)
    return default if stated is None else stated


def _hits(event: dict[str, Any], offset: int, rank: int | None) -> list[Hit]:
    kind = event.get("event")
    key, scope = _KINDS.get(kind, _FREE) if isinstance(kind, str) else _FREE
    step = _whole(event.get(key)) if key else None
    if "scope" in event:
        scope = _stated_scope(event["scope"]) or scope
    # In an event with a kind, `epoch` says where in the run it happened.
    metrics = _FREE_METRICS if kind is None else _METRICS
    return [
        Hit(offset, metric, value, scope or _free_scope(metric, step), step, rank)
        for metric, raw in event.items()
        if metric in metrics and (value := _number(raw)) is not None
    ]


def _stated_scope(raw: object) -> Scope | None:
    return _SCOPES.get(raw) if isinstance(raw, str) else None


def _free_scope(metric: str, step: int | None) -> Scope:
    return "per_rank" if metric in _RANKS_OWN and step is not None else "global"


def _number(raw: object) -> float | None:
    if isinstance(raw, float):
        return raw if math.isfinite(raw) else None
    if not isinstance(raw, int) or isinstance(raw, bool):
        return None
    try:
        return float(raw)
    except OverflowError:
        return None


def _whole(raw: object) -> int | None:
    if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw < _MOST:
        return raw
    return None
