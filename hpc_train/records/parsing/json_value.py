"""Values of decoded JSON -> finite numbers and whole numbers, or None."""

from __future__ import annotations

import json
import math

from hpc_train.records.parsing.number import COUNTABLE

scan = json.JSONDecoder().raw_decode


def finite(raw: object) -> float | None:
    """Return a JSON number as float; None if it is not a number, too large or not finite."""
    if isinstance(raw, float):
        return raw if math.isfinite(raw) else None
    if not isinstance(raw, int) or isinstance(raw, bool):
        return None
    try:
        return float(raw)
    except OverflowError:
        return None


def whole(raw: object) -> int | None:
    """Return a JSON number as a count; None if it is not a whole number from 0."""
    if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw < COUNTABLE:
        return raw
    return None


def scan_object(text: str, start: int) -> tuple[dict[str, object], int] | None:
    """Return the object that starts at `start` and where it ends, whatever follows it."""
    try:
        found, end = scan(text, start)
    except (ValueError, RecursionError):
        return None
    return (found, end) if isinstance(found, dict) else None
