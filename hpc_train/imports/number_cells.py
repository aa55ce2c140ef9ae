"""The text of a cell -> its number, or the reason why it is none."""

from __future__ import annotations

import re
from math import isfinite

ABSENT = frozenset({"", "-", "--", "NA", "N/A", "n/a", "null", "None"})
MOST = 1e100
# Letters of a cell in a message.
_LONGEST = 40
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:[,_' \u00a0\u202f.][0-9]{3})+(?:[.,][0-9]+)?")
_COMMA = re.compile(r"^[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?")
_WITH_UNIT = re.compile(rf"^(?P<number>{_NUMBER.pattern})\s*(?P<unit>[^\W\d_].*|%.*|/.*)")


def number(text: str, unit: str) -> float:
    """Return the number in a cell; `unit` is the one that its column is in.

    Raises:
        ValueError: the cell is not a finite number; the message gives the reason.
    """
    text = text.strip()
    if not _NUMBER.fullmatch(text):
        raise ValueError(_why(text, unit))
    value = float(text)
    if not isfinite(value) or abs(value) > MOST:
        raise ValueError(f"{_short(text)} is too large for a measurement; at most {MOST:g}")
    return value


def whole(text: str, least: int) -> int:
    """Return the whole number in a cell.

    Raises:
        ValueError: it is not a whole number, or smaller than `least`.
    """
    value = number(text, "1")
    if value != int(value) or not least <= value <= 10**9:
        raise ValueError(f"{_short(text.strip())} must be a whole number from {least} up")
    return int(value)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} letters)"


def _why(text: str, unit: str) -> str:
    shown = repr(_short(text))
    if _NOT_FINITE.fullmatch(text):
        return f"{shown} is not a measurement; leave the cell empty if nothing was measured"
    if _COMMA.fullmatch(text):
        return _comma(text)
    if _GROUPED.fullmatch(text):
        return f"{shown} has thousands separators; write the digits without them"
    suffixed = _WITH_UNIT.fullmatch(text)
    if suffixed and suffixed["unit"].startswith("%"):
        return f"{shown} is in percent; write a number without a unit, a fraction of 1"
    if suffixed:
        column = f"the column is in {unit}" if unit != "1" else "the column has no unit"
        return f"{shown} has the unit {_short(suffixed['unit'])!r}; write a number alone, {column}"
    return f"{shown} is not a number"


def _comma(text: str) -> str:
    shown, point = repr(_short(text)), _short(text.replace(",", "."))
    if _GROUPED.fullmatch(text) and not text.lstrip("+-").startswith("0"):
        both = f"{point} or {_short(text.replace(',', ''))}"
        return f"{shown} has a decimal comma, or a thousands separator; write {both}"
    return f"{shown} has a decimal comma; write {point} with a point"
