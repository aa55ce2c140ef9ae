"""Durations as programs print them: `0:15:19.02`, `1 day, 2:03:04`, `919.1`."""

from __future__ import annotations

import re

from hpc_train.records.parsing.number import number

CLOCK = r"(?:\d{1,6} days?, )?\d{1,7}:\d\d:\d\d(?:\.\d{1,9})?"
"""Pattern of days, hours, minutes and seconds."""

_CLOCK = re.compile(r"(?:(\d{1,6}) days?, )?(\d{1,7}):(\d\d):(\d\d(?:\.\d{1,9})?)")


def seconds(text: str) -> float | None:
    """Return the duration [s] that a text states, as a clock or as a number of seconds."""
    match = _CLOCK.fullmatch(text)
    if match is None:
        return number(text)
    days, hours, minutes, rest = match.groups(default="0")
    return int(days) * 86_400 + int(hours) * 3600 + int(minutes) * 60 + float(rest)
