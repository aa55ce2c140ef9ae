"""A line of Keras' Progbar, or of verbose=2 -> how far it is, its times, its values."""

from __future__ import annotations

import re
from typing import NamedTuple

from hpc_train.records.parsers.number import number, scaled

_HEAD = re.compile(
    r"\s{0,12}(?P<done>\d{1,12})/(?P<total>\d{1,12}|Unknown)"
    r"(?: (?P<bar>\[[=>.]{1,60}\]|[━╸ ]{1,60}))?"
)
_TIME = re.compile(
    r"(?P<clock>\d{1,7})s(?: (?P<each>\d{1,7})(?P<unit>us|ms|s)/(?P<of>step|sample|epoch))?"
)
_EACH = re.compile(r"(?P<each>\d{1,7})(?P<unit>us|ms|s)/(?P<of>step|sample)")
# Four decimals are what it prints: with fewer, a number was cut.
_VALUE = re.compile(r"(?P<name>[A-Za-z]\w{0,80}): (?P<value>-?\d{1,15}\.\d{4}(?:e[+-]\d\d)?)")
_SCALE = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_LONGEST = 4000


class KerasLine(NamedTuple):
    """`each` [s] is the time of a step, or of a sample; 0 where nothing says it.

    `ended`: it shows no time that is left. `last`: it cannot be drawn again, as the next drawing
    would go back over it. `doubtful`: Keras 3 draws the last step like the end of the epoch.
    """

    total: int
    ended: bool
    last: bool
    doubtful: bool
    clock: int
    each: float
    digits: int
    of: str
    values: dict[str, float]


def line_of(text: str) -> KerasLine | None:
    """Return what a line shows; None if it is none of Keras'."""
    text, last = text[:_LONGEST].rstrip("\b "), not text.endswith("\b")
    head = _HEAD.match(text)
    if head is None and not text.lstrip().startswith("- "):
        return None
    parts = [part.strip() for part in text[head.end() if head else 0 :].split(" - ")]
    # What is left of a longer drawing stands behind more blanks.
    parts = [part.removeprefix("- ").partition("  ")[0] for part in parts]
    times = [match for part in parts if (match := _TIME.fullmatch(part) or _EACH.fullmatch(part))]
    clock = next((match for match in times if "clock" in match.groupdict()), None)
    if clock is None and not any(part.startswith("ETA: ") for part in parts):
        return None
    each = next((match for match in times if match["each"] and match["of"] != "epoch"), None)
    values = {
        match["name"]: value
        for part in parts
        if (match := _VALUE.fullmatch(part)) and (value := number(match["value"])) is not None
    }
    bar = (head["bar"] or "") if head else ""
    return KerasLine(
        total=int(head["total"]) if head and head["total"].isdecimal() else 0,
        ended=clock is not None and (head is None or head["done"] == head["total"]),
        last=last,
        doubtful="━" in bar and clock is not None and clock["clock"] == "0",
        clock=int(clock["clock"]) if clock else 0,
        each=scaled(int(each["each"]), _SCALE[each["unit"]]) if each else 0.0,
        digits=len(each["each"]) if each else 0,
        of=each["of"] if each else "",
        values=values,
    )
