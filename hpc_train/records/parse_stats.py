"""Statistics of reading logs: formats, damaged lines and errors."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator

import msgspec

from hpc_train.records.line import Line

_WIDTH = 120


class LineSample(msgspec.Struct):
    """A kind of line: the position of the first one, and the number of lines."""

    source: str
    line: int
    text: str
    lines: int = 1


class ParseStats(msgspec.Struct):
    """Counts, while logs are read.

    `known`: lines that each parser read; `nearly`: lines with a parser's literal that no parser
    could read. `damaged`: truncated lines of each source. `failed`: the reason why a source was not
    read. `refused`: the impossible values by run, metric and reason (`value_checks`). `slow`: the
    users' patterns that took too long and were left out, and the line at which they did.
    """

    known: dict[str, LineSample] = msgspec.field(default_factory=dict)
    nearly: dict[str, LineSample] = msgspec.field(default_factory=dict)
    damaged: dict[str, int] = msgspec.field(default_factory=Counter)
    failed: dict[str, str] = msgspec.field(default_factory=dict)
    refused: dict[str, LineSample] = msgspec.field(default_factory=dict)
    slow: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def lines(self) -> int:
        """The lines that contain a literal."""
        kinds = (*self.known.values(), *self.nearly.values())
        return sum(seen.lines for seen in kinds) + sum(self.damaged.values())

    def add(self, other: ParseStats) -> None:
        """Add the counts of another log."""
        kinds = (
            (self.known, other.known),
            (self.nearly, other.nearly),
            (self.refused, other.refused),
        )
        for mine, theirs in kinds:
            for name, seen in theirs.items():
                if name in mine:
                    mine[name].lines += seen.lines
                else:
                    mine[name] = copy.copy(seen)
        for source, lines in other.damaged.items():
            self.damaged[source] = self.damaged.get(source, 0) + lines
        self.failed |= other.failed
        self.slow = {**other.slow, **self.slow}

    def refusals(self) -> Iterator[str]:
        """Yield a sentence for each kind of value that was refused, and each slow pattern."""
        for name, place in self.slow.items():
            yield f"{name} takes too long, and is left out from {place} on"
        for name, seen in self.refused.items():
            values = f"{seen.lines} value{'s' * (seen.lines != 1)}"
            yield f"{name}: {values} refused, the first {seen.text} ({seen.source}:{seen.line})"


def count(kinds: dict[str, LineSample], name: str, source: str, line: Line) -> None:
    """Count one line of a kind; the first one is kept."""
    seen = kinds.get(name)
    if seen is None:
        kinds[name] = LineSample(source, line.number, line.text[:_WIDTH])
    else:
        seen.lines += 1
