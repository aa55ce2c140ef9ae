"""Values of decoded JSON -> finite numbers and whole numbers, or None."""

from __future__ import annotations

import json
import math

scan = json.JSONDecoder().raw_decode

# Beyond this a step or rank is no number of anything, and tables hold 64 bits.
_MOST = 10**15


def finite(raw: object) -> float | None:
    """Return a JSON number as float; None if it is none, too large or not finite."""
    if isinstance(raw, float):
        return raw if math.isfinite(raw) else None
    if not isinstance(raw, int) or isinstance(raw, bool):
        return None
    try:
        return float(raw)
    except OverflowError:
        return None


def whole(raw: object) -> int | None:
    """Return a JSON number that counts something; None if it cannot."""
    if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw < _MOST:
        return raw
    return None


def scan_object(text: str, start: int) -> tuple[dict[str, object], int] | None:
    """Return the object that starts at `start` and where it ends, whatever follows it."""
    try:
        found, end = scan(text, start)
    except (ValueError, RecursionError):
        return None
    return (found, end) if isinstance(found, dict) else None
