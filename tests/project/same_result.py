"""Whether two files of a report say the same: numbers but for their last digit.

Sums, logarithms and matrices differ in the last bits from processor to processor. Of the nine
digits that a report writes, or the few that a reader sees, only the last can change by that.
"""

from __future__ import annotations

import base64
import re
from decimal import Decimal

# Numbers, but not those in a name, a colour or an address (1-0a24032a-r3, #4c47f5, v2.1.0).
_NUMBER = re.compile(r"(?<![\w.#-])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]*\w)", re.ASCII)
# What is left of a difference of equal numbers near 1 or 100.
_NOTHING = Decimal("1e-11")
_DATA = re.compile(r"data:text/csv;base64,([\w+/=]+)")
# Names within a picture, which are made from the bytes of what they name.
_NAME = re.compile(r"(?<=[\s\"#])(?:[mpch][0-9a-f]{10}|[\w-]*-[mpch][0-9a-f]{10})(?=[\"')])")


def differences(one: str, other: str) -> list[str]:
    """Return what differs in two texts: their words, or numbers by more than the last digit.

    Whole numbers are counts, and equal.
    """
    words = [_NUMBER.sub("#", text) for text in (one, other)]
    if words[0] != words[1]:
        pairs = zip(*(text.splitlines() for text in words), strict=False)
        return next(([f"{a} | {b}"] for a, b in pairs if a != b), ["one text is longer"])
    pairs = zip(*(_NUMBER.findall(text) for text in (one, other)), strict=True)
    return [f"{a} | {b}" for a, b in pairs if not _same(a, b)]


def plain(text: str) -> str:
    """Return a text with the tables that links hold in it, and names of a picture in order."""
    shown = _DATA.sub(lambda link: base64.b64decode(link[1]).decode(), text)
    names: dict[str, str] = {}
    return _NAME.sub(lambda name: names.setdefault(name[0], f"name{len(names)}"), shown)


def _same(one: str, other: str) -> bool:
    first, second = Decimal(one), Decimal(other)
    last = min(_place(first), _place(second))
    if last >= 0:
        return first == second
    return abs(first - second) <= max(Decimal(1).scaleb(last), _NOTHING)


def _place(number: Decimal) -> int:
    """Return the power of ten of the last digit."""
    place = number.as_tuple().exponent
    assert isinstance(place, int)
    return place
