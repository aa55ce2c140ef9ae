"""Progress bars of tqdm and Rich -> what they say: position, time of an iteration, other fields."""

from __future__ import annotations

import re
from typing import NamedTuple

_TQDM = re.compile(
    r"(?:\d{1,3}%)?\|[^|]{0,400}\| *(?P<done>\d{1,12})/(?P<total>\d{1,12}) "
    r"\[(?P<elapsed>[\d:]{1,16})<[^,\]]{1,24}"
    r"(?:, +(?P<rate>[\d.]{1,16}|\?)(?P<unit>it/s|s/it))?"
    r"(?:, (?P<fields>[^\]]{0,4096}))?\]"
)
_ENDLESS = re.compile(
    r"(?<!\d)(?P<done>\d{1,12})(?P<total>)it \[(?P<elapsed>[\d:]{1,16})"
    r"(?:, +(?P<rate>[\d.]{1,16}|\?)(?P<unit>it/s|s/it))?"
    r"(?:, (?P<fields>[^\]]{0,4096}))?\]"
)
_RICH = re.compile(
    r"(?<![━╸╺─])[━╸╺─]{1,400} {0,400}(?P<done>\d{1,12})/(?:(?P<total>\d{1,12})|--) "
    r"(?P<elapsed>\d{1,4}:\d\d:\d\d) • \S{1,12} +(?P<rate>[\d.]{1,16})(?P<unit>it/s|s/it)"
    r"(?P<fields>.{0,4096})"
)

_COARSE = 0.1


class Bar(NamedTuple):
    """Where an iteration stands, and how long [s] one takes; `start` is where the bar begins.

    `total` is 0 where the program does not know it.
    """

    done: int
    total: int
    step_time: float | None
    fields: str
    start: int
    end: int


def bar_of(text: str) -> Bar | None:
    """Return the first bar on a line that is complete."""
    match = _TQDM.search(text) or _ENDLESS.search(text) or _RICH.search(text)
    if match is None:
        return None
    return Bar(
        int(match["done"]),
        int(match["total"] or 0),
        _step_time(match),
        match["fields"] or "",
        *match.span(),
    )


def _step_time(match: re.Match[str]) -> float | None:
    try:
        value = float(match["rate"] or "")
    except ValueError:
        return None
    if match["unit"] == "s/it":
        return value
    # Of 0.02it/s one digit is left; such bars show the mean since they began.
    return 1 / value if value >= _COARSE else _mean(match["elapsed"], int(match["done"]))


def _mean(elapsed: str, done: int) -> float | None:
    parts = [int(part) for part in elapsed.split(":") if part]
    whole = sum(part * 60**place for place, part in enumerate(reversed(parts)))
    return whole / done if done and whole else None
