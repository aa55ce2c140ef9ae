"""Values -> text: numbers, `--` for a missing one; texts of logs without control characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, isfinite, log10
from typing import Any

ABSENT = "--"
# The resolution of clocks is a nanosecond; further digits differ between processors.
DIGITS = 9


def rounded(value: Any) -> Any:
    """Return a float rounded to nine significant digits; any other value unchanged."""
    if not isinstance(value, float) or value.is_integer() or not isfinite(value):
        return value
    return float(f"{value:.{DIGITS}g}")


def significant(value: float | None, digits: int = 4) -> str:
    """Return at least `digits` significant digits, without an exponent for large numbers."""
    if value is None or not isfinite(value):
        return ABSENT
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - floor(log10(abs(value))))
    return f"{value:.{decimals}f}" if decimals < 10 else f"{value:.{digits}g}"


def fixed(value: float | None, decimals: int, factor: float = 1) -> str:
    """Return value x factor with `decimals` decimals."""
    known = value is not None and isfinite(value * factor)
    return f"{value * factor:.{decimals}f}" if value is not None and known else ABSENT


def with_limits(
    row: Mapping[str, Any],
    name: str,
    decimals: int | None,
    factor: float = 1,
    *,
    limits: bool = True,
) -> str:
    """Return `3.95 [3.90, 4.01]`; only the value where there is no interval, or without `limits`.

    Without a number of decimals each is written with four significant digits.
    """
    value, low, high = (row.get(f"{name}{end}") for end in ("", "_low", "_high"))
    shown = _written(value, decimals, factor)
    ends = [_written(limit, decimals, factor) for limit in (low, high)]
    return f"{shown} [{', '.join(ends)}]" if limits and ABSENT not in (shown, *ends) else shown


def _written(value: float | None, decimals: int | None, factor: float) -> str:
    if value is None or decimals is not None:
        return fixed(value, decimals or 0, factor)
    return significant(value * factor)


def whole(value: float | None) -> str:
    """Return a count or a ratio with at most six significant digits."""
    return ABSENT if value is None or not isfinite(value) else f"{value:.6g}"


def level_word(confidence: float) -> str:
    """Return `98.33 %`, with enough digits that a level is never shown as 100 %."""
    digits = max(4, 1 - floor(log10(1 - confidence)))
    return f"{100 * confidence:.{digits}g} %"


def levels_word(rows: Sequence[Mapping[str, Any]], confidence: float) -> str:
    """Return the levels of the intervals of rows, `95 % to 98.33 %`; without any `confidence`."""
    levels = sorted({row["level"] for row in rows} - {None}) or [confidence]
    return " to ".join(dict.fromkeys(map(level_word, (levels[0], levels[-1]))))


def one_line(text: str) -> str:
    """Return the text on one line, each control character as its escape (`\\x1b`)."""
    words = " ".join(text.split())
    if words.isprintable():
        return words
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)
