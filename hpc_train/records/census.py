"""Census: what was seen while logs were read, for those who ask which formats and why."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from hpc_train.records.line import Line

_WIDTH = 120


class Seen(NamedTuple):
    """A kind of line: how many, and where the first one is."""

    lines: int
    source: str
    line: int
    text: str


class Census:
    """Counts, while logs are read.

    `known`: lines that each parser took; `nearly`: lines that hold a parser's literal, but that
    nobody could read. `damaged`: cut lines of each source. `failed`: why a source was not read.
    """

    def __init__(self) -> None:
        self.known: dict[str, Seen] = {}
        self.nearly: dict[str, Seen] = {}
        self.damaged: Counter[str] = Counter()
        self.failed: dict[str, str] = {}

    def add(self, other: Census) -> None:
        """Add what was seen of another log."""
        for mine, theirs in ((self.known, other.known), (self.nearly, other.nearly)):
            for name, seen in theirs.items():
                first = mine.get(name, seen._replace(lines=0))
                mine[name] = first._replace(lines=first.lines + seen.lines)
        self.damaged += other.damaged
        self.failed |= other.failed


def count(kinds: dict[str, Seen], name: str, source: str, line: Line) -> None:
    """Count one line of a kind; the first one is kept."""
    seen = kinds.get(name)
    if seen is None:
        kinds[name] = Seen(1, source, line.number, line.text[:_WIDTH])
    else:
        kinds[name] = seen._replace(lines=seen.lines + 1)
