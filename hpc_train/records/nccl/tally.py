"""Tally: counts of the lines of one or several logs, before they are evaluated."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

# Largest number of different ends that are counted separately, for bounded memory.
_MOST = 200_000


class Ends(NamedTuple):
    """Both ranks of a network channel, and the host and the rank that printed the line."""

    kind: str
    sender: int
    receiver: int
    sends: bool
    host: str


class RankPlacement(NamedTuple):
    """The host and GPU of a rank, in a communicator of `ranks` ranks."""

    ranks: int
    rank: int
    host: str
    bus: str


class Tally:
    """Counts of facts; `facts` is keyed by kind (`network`, `plugin`, `env NCCL_ALGO`) and value.

    `counts` are events (`rings`, `warnings`), `largest` is the largest number of a kind. `first` is
    the position of the first line of each kind.
    """

    def __init__(self) -> None:
        self.channels: Counter[str] = Counter()
        self.ends: Counter[Ends] = Counter()
        self.elsewhere: Counter[str] = Counter()
        self.without_gdr: Counter[str] = Counter()
        self.hosts: Counter[str] = Counter()
        self.seats: Counter[RankPlacement] = Counter()
        self.counts: Counter[str] = Counter()
        self.facts: dict[str, Counter[str]] = {}
        self.largest: dict[str, float] = {}
        self.first: dict[str, str] = {}

    def connect(self, ends: Ends, channels: int) -> None:
        """Count network channels whose ends are known."""
        if len(self.ends) < _MOST or ends in self.ends:
            self.ends[ends] += channels
        else:
            self.elsewhere[ends.kind] += channels

    def seat(self, seat: RankPlacement, lines: int) -> None:
        """Count a rank that was initialised."""
        if len(self.seats) < _MOST or seat in self.seats:
            self.seats[seat] += lines

    def note(self, kind: str, value: str, lines: int) -> None:
        """Count a fact."""
        values = self.facts.setdefault(kind, Counter())
        if len(values) < _MOST or value in values:
            values[value] += lines

    def raise_to(self, kind: str, value: float) -> None:
        """Keep the largest number of a kind."""
        self.largest[kind] = max(value, self.largest.get(kind, value))

    def add(self, other: Tally) -> None:
        """Add the counts of another log; the positions in this one come first."""
        for mine, theirs in (
            (self.channels, other.channels),
            (self.elsewhere, other.elsewhere),
            (self.without_gdr, other.without_gdr),
            (self.hosts, other.hosts),
            (self.counts, other.counts),
        ):
            mine.update(theirs)
        self.ends.update(other.ends)
        self.seats.update(other.seats)
        for kind, values in other.facts.items():
            self.facts.setdefault(kind, Counter()).update(values)
        for kind, value in other.largest.items():
            self.raise_to(kind, value)
        self.first = {**other.first, **self.first}
