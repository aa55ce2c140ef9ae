"""Progress bars of tqdm and Rich -> position, time of an iteration, other fields."""

from __future__ import annotations

import re
from typing import NamedTuple

_TQDM = re.compile(
    r"(?:(?:\d{1,3}%)?\|[^|]{0,400}\||\d{1,3}%) *(?P<done>\d{1,12})/(?P<total>\d{1,12}) "
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
    """Position of an iteration, and its time [s]; `start` is the offset where the bar begins.

    `elapsed` is the number of whole seconds since the bar began. `total` is 0 if it is unknown to
    the program. `free` is the offset where the previous bar ended.
    """

    done: int
    total: int
    elapsed: int
    step_time: float | None
    fields: str
    start: int
    end: int
    free: int


def bar_of(text: str) -> Bar | None:
    """Return the first complete bar on a line that has begun to move, else the first."""
    bars = (_bars(pattern, text) for pattern in (_TQDM, _ENDLESS, _RICH))
    found = next(filter(None, bars), [])
    return next((bar for bar in found if bar.done), found[0] if found else None)


def _bars(pattern: re.Pattern[str], text: str) -> list[Bar]:
    bars: list[Bar] = []
    for match in pattern.finditer(text):
        bars.append(_bar(match, bars[-1].end if bars else 0))
    return bars


def _bar(match: re.Match[str], free: int) -> Bar:
    elapsed = _seconds(match["elapsed"])
    return Bar(
        int(match["done"]),
        int(match["total"] or 0),
        elapsed,
        _step_time(match, elapsed),
        match["fields"] or "",
        *match.span(),
        free,
    )


def _step_time(match: re.Match[str], elapsed: int) -> float | None:
    try:
        value = float(match["rate"] or "")
    except ValueError:
        return None
    if match["unit"] == "s/it":
        return value
    done = int(match["done"])
    # 0.02it/s has only one significant digit; such bars show the mean since they began.
    mean = elapsed / done if done and elapsed else None
    return 1 / value if value >= _COARSE else mean


def _seconds(clock: str) -> int:
    parts = [int(part) for part in clock.split(":") if part]
    return sum(part * 60**place for place, part in enumerate(reversed(parts)))
