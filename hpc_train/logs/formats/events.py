"""Lines `@hpct {json}`, printed by the reference workload or by any script.

The key `event` is the kind of the line: `start` and `end` describe the run (global), `epoch` an
epoch (global, its number is the step), `step` a step (per rank). Without `event`, `step_time` and
`samples` are per rank if there is a `step`, and everything else is global. The key `scope`
overrides these defaults. `node` is the host of the rank. `conditions` is an object with properties
of the run (`torch`, `gpu`).
Metrics have the names and units of `model.record.UNITS`; other keys, null and values that are not
finite numbers are ignored.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec

from hpc_train.base.metrics import UNITS
from hpc_train.base.node_names import host_name
from hpc_train.base.variable_names_and_secrets import looks_secret, secret_form
from hpc_train.logs.formats.base import OF_LINE, Coded, Hit, Unreadable, finite, scan, whole
from hpc_train.logs.line import Line, clean, peel
from hpc_train.logs.record import Scope

MOST_CONDITIONS = 50
_LONGEST_CONDITION = 200
_CONDITION_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,49}")
_LONGEST = 16_384
# Stops at `@` and `{`: if another rank has written into the line, its event is found next.
_EVENT = re.compile(rb"@hpct (\{[^{}@\r\n]{0,16384}\}?)")
_SCOPES: dict[str, Scope] = {"global": "global", "per_gpu": "per_gpu", "per_rank": "per_rank"}
_RANKS_OWN = frozenset({"step_time", "samples", "compute_time"})
_FREE_METRICS = frozenset(UNITS) - {"condition"}
# Measured with messages of one size.
_OF_A_SIZE = frozenset({"algbw", "busbw", "latency"})
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


class Events(Coded):
    """Parser of `@hpct` lines."""

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of each event; an event that cannot be decoded is `Unreadable`."""
        data, done = line.raw, 0
        for match in _EVENT.finditer(data):
            start, end = match.span()
            if start < done:
                continue
            event, end = _decoded(data, match)
            if event is None:
                yield Unreadable()
                continue
            yield from _hits(event, _rank(whole(event.get("rank")), line, start, done))
            done = end


def _decoded(data: bytes, match: re.Match[bytes]) -> tuple[dict[str, Any] | None, int]:
    """Return an event and where it ends; None if it is damaged."""
    if match[1].endswith(b"}"):
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return _decode(match[1]), match.end()
    # Braces or `@` in a string, nested values, NaN, bad UTF-8.
    start = match.start(1)
    text = data[start : start + _LONGEST].decode("utf-8", "surrogateescape")
    try:
        event, length = scan(text)
    except (ValueError, RecursionError):
        return None, match.end()
    return event, start + len(text[:length].encode("utf-8", "surrogateescape"))


def _rank(stated: int | None, line: Line, start: int, floor: int) -> int | None:
    """Return the rank of the event that starts at `start`, after one that ended at `floor`."""
    if stated is not None:
        return stated
    if floor == 0:
        return OF_LINE
    # The space that ends a prefix is removed at the end of a line.
    named = peel(clean(line.raw[floor:start]) + " ").rank
    return line.file_rank if named is None else named


def _hits(event: dict[str, Any], rank: int | None) -> Iterator[Hit | Unreadable]:
    kind = event.get("event")
    key, scope = _KINDS.get(kind, _FREE) if isinstance(kind, str) else _FREE
    step, node = whole(event.get(key)) if key else None, host_name(event.get("node"))
    if "scope" in event:
        scope = _SCOPES.get(stated) or scope if isinstance(stated := event["scope"], str) else scope
    # In an event with a kind, `epoch` is its position in the run.
    metrics = _FREE_METRICS if kind is None else _METRICS
    size = whole(event.get("message_size"))
    if "conditions" in event:
        yield from condition_hits(event["conditions"], rank)
    damaged = False
    for metric, raw in event.items():
        if metric not in metrics:
            continue
        if (value := finite(raw)) is None:
            damaged = damaged or metric != "epoch"
            continue
        of_metric = scope or ("per_rank" if step is not None and metric in _RANKS_OWN else "global")
        size_of = size if metric in _OF_A_SIZE else None
        yield Hit(metric, value, of_metric, step, rank, message_size=size_of, node=node)
    if damaged:
        yield Unreadable()


def condition_hits(stated: object, rank: int | None) -> list[Hit]:
    """Return the conditions as hits whose `variant` is `NAME=VALUE`; several ranks may print them.

    Strings, numbers and booleans are accepted; control characters are removed and long strings are
    truncated. Values that look like a secret are dropped.
    """
    if not isinstance(stated, dict):
        return []
    variants = [
        f"{name}={text}"
        for name, value in stated.items()
        if _CONDITION_NAME.fullmatch(name)
        and (text := _condition_text(value))
        and not (looks_secret(name, text) or secret_form(text))
    ]
    return [
        Hit("condition", 1.0, "global", rank=rank, variant=variant, once=variant)
        for variant in variants[:MOST_CONDITIONS]
    ]


def _condition_text(value: object) -> str:
    if not isinstance(value, (str, int, float)):
        return ""
    text = str(value).lower() if isinstance(value, bool) else " ".join(str(value).split())
    printable = "".join(letter for letter in text if letter.isprintable())
    return printable[:_LONGEST_CONDITION].strip()
