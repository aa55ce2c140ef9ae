"""Text of a line -> the time and host in it."""

from __future__ import annotations

import re

# `2025-01-31T12:00:00`, `2025-01-31 12:00:00,123`, torchrun's `2025-01-31_12:00:00`.
_FULL = re.compile(
    r"(?<!\d)(?P<date>(?:19|20)\d\d-[01]\d-[0-3]\d)[T _]"
    r"(?P<time>[0-2]\d:[0-5]\d:[0-6]\d)(?:[.,](?P<part>\d{1,9}))?"
)
# glog's `[E131 12:00:00.123`, `W0131 12:00:00.123`: no year.
_GLOG = re.compile(
    r"(?:^|[\[ ])[IWEFCV](?P<month>\d{1,2})(?P<day>[0-3]\d) "
    r"(?P<time>[0-2]\d:[0-5]\d:[0-6]\d)(?:\.(?P<part>\d{1,9}))?"
)
# Number of lines at the beginning of a log in which the year is searched.
_FIRST = 200
# A stamp that is not near the beginning of a line is not the time of the line.
_NEAR = 400
_NODES = (
    re.compile(r"^(?:\[[^\]]{4,40}\] )?(?P<node>[A-Za-z][\w.-]{0,80}):\d{1,9}:\d{1,9} \["),
    re.compile(r"\*\*\* (?:JOB|STEP) \S{1,40} ON (?P<node>\S{1,80}) "),
    re.compile(r"^(?:srun|slurmstepd): error: (?P<node>[^\s:]{1,80}): task"),
    re.compile(r"^\[(?P<node>[A-Za-z][\w.-]{0,80}):\d{1,9}\] "),
)


class Clock:
    """Reads the times of one log; a stamp without a year gets the year of the stamps before it."""

    def __init__(self) -> None:
        self._year: str | None = None
        self._left = _FIRST

    @property
    def wants_year(self) -> bool:
        """Whether the year is unknown, and the lines at the beginning of the log are still read."""
        return self._year is None and self._left > 0

    def look(self, text: str) -> None:
        """Take the year from a line, if the year is unknown."""
        if self.wants_year:
            self._left -= 1
            self.time(text)

    def time(self, text: str) -> str | None:
        """Return the time in a line, as ISO 8601 text."""
        start = text[:_NEAR]
        full = _FULL.search(start)
        if full:
            self._year = full["date"][:4]
            return _iso(full["date"], full)
        short = _GLOG.search(start)
        if short is None or self._year is None or not 1 <= int(short["month"]) <= 12:
            return None
        return _iso(f"{self._year}-{int(short['month']):02}-{short['day']}", short)


def node_of(text: str) -> str | None:
    """Return the host in a line of NCCL, Slurm or Open MPI."""
    for pattern in _NODES:
        match = pattern.search(text)
        if match:
            return match["node"]
    return None


def _iso(date: str, match: re.Match[str]) -> str:
    part = match["part"]
    return f"{date}T{match['time']}" + (f".{part}" if part else "")
