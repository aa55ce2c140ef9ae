"""Numbers as programs print them: `5,403`, `1.2K`, `nan`, durations, and values of JSON."""

from __future__ import annotations

import json
import math
import re

_SUFFIXES = {"K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "P": 1e15}
NUMBER = r"[-+]?(?:\d[\d,]{0,39}(?:\.\d{0,39})?|\.\d{1,39})(?:[eE][-+]?\d{1,9})?(?!\d)"
"""Pattern of a finite number, with thousands separated or not; bounded, so that no line is slow."""
VALUE = rf"({NUMBER}|-?nan|-?inf)"
"""Group of what stands where a number should: also one that is not finite."""
COUNTABLE = 10**15
"""Beyond this a step or rank is no number of anything, and tables hold 64 bits."""
CLOCK = r"(?:\d{1,6} days?, )?\d{1,7}:\d\d:\d\d(?:\.\d{1,9})?"
"""Pattern of days, hours, minutes and seconds."""
_CLOCK = re.compile(r"(?:(\d{1,6}) days?, )?(?:(\d{1,7}):)?(\d{1,3}):(\d\d(?:\.\d{1,9})?)")
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?![\d,])")
scan = json.JSONDecoder().raw_decode


def number(text: str) -> float | None:
    """Return the number that a text states; None if there is none, or it is not finite."""
    try:
        value = float(text)
    except ValueError:
        value = _decorated(text)
    # Neither NaN nor infinite.
    return value if -math.inf < value < math.inf else None


def scaled(value: float, factor: float) -> float:
    """Return a printed number in another unit, without what binary fractions add: 51 ms, 0.051 s.

    Printed numbers have fewer digits than are kept.
    """
    return value if factor == 1.0 else float(f"{value * factor:.15g}")


def quotient(over: float, under: float) -> float | None:
    """Return a ratio of two printed numbers; None where it is none, or beyond all numbers."""
    value = over / under if under else math.inf
    return value if math.isfinite(value) else None


def countable(value: float | None) -> int | None:
    """Return a step, a rank or a size as a whole number; None where it cannot be one."""
    return None if value is None or not abs(value) < COUNTABLE else round(value)


def _decorated(text: str) -> float:
    scale = _SUFFIXES.get(text[-1:], 1.0)
    plain = text[:-1] if scale != 1.0 else text
    if "," in plain:
        # `0,532` and `12,5` have a decimal comma: no group of three digits begins with 0.
        plain = plain.replace(",", "" if _GROUPED.match(plain) else ".")
    try:
        return float(plain) * scale
    except ValueError:
        return math.nan


def seconds(text: str) -> float | None:
    """Return the duration [s] that a text states, as a clock or as a number of seconds."""
    match = _CLOCK.fullmatch(text)
    if match is None:
        return number(text)
    days, hours, minutes, rest = match.groups(default="0")
    return int(days) * 86_400 + int(hours) * 3600 + int(minutes) * 60 + float(rest)


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
