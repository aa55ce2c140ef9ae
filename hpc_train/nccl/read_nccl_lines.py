"""Tally: counts of the lines of one or several logs, before they are evaluated."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache, cached_property
from typing import Literal, NamedTuple

from hpc_train.base.decode import load_data
from hpc_train.base.values import Value
from hpc_train.logs.line import Line
from hpc_train.logs.line_dispatch import Block


class Ends(NamedTuple):
    """Both ranks of a network channel, and the host and the rank that printed the line."""

    kind: str
    sender: int
    receiver: int
    sends: bool
    host: str


class Tally:
    """Counts of facts; `facts` is keyed by kind (`network`, `plugin`, `env NCCL_ALGO`) and value.

    `counts` are those of the channels that receive, `largest` is the largest number of a kind.
    `first` is the position of the first line of each kind.
    """

    def __init__(self) -> None:
        self.channels: Counter[str] = Counter()
        self.ends: Counter[Ends] = Counter()
        self.elsewhere: Counter[str] = Counter()
        self.without_gdr: Counter[str] = Counter()
        self.hosts: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.facts: dict[str, Counter[str]] = {}
        self.largest: dict[str, float] = {}
        self.first: dict[str, str] = {}

    def note(self, kind: str, value: str, lines: int) -> None:
        """Count a fact."""
        self.facts.setdefault(kind, Counter())[value] += lines

    def raise_to(self, kind: str, value: float) -> None:
        """Keep the largest number of a kind."""
        self.largest[kind] = max(value, self.largest.get(kind, value))

    def add(self, other: Tally) -> None:
        """Add the counts of another log; the positions in this one come first."""
        for name in ("channels", "elsewhere", "without_gdr", "hosts", "counts", "ends"):
            getattr(self, name).update(getattr(other, name))
        for kind, values in other.facts.items():
            self.facts.setdefault(kind, Counter()).update(values)
        for kind, value in other.largest.items():
            self.raise_to(kind, value)
        self.first = {**other.first, **self.first}


# Blocks of one log -> lines of NCCL -> Tally; channels, possibly millions, are parsed as bytes.


class Message(Value, frozen=True, kw_only=True, dict=True):
    """A kind of line, as it is written in the file."""

    kind: str
    words: str
    pattern: str
    value: str = ""
    each: str = ""

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern."""
        return re.compile(self.pattern)

    def count(self, tally: Tally, match: re.Match[str], lines: int) -> None:
        """Count what a match states, and that of equal lines of its host."""
        named = match.groupdict("")
        for kind in _LARGEST & named.keys():
            tally.raise_to(kind, float(named[kind]))
        if self.kind in _LARGEST:
            return
        kind = f"env {named['name']}" if self.kind == "env" else self.kind
        values = [self.value.format(**named) if self.value else match[1]]
        if self.each:
            # The interface of the bootstrap follows the adapters.
            values = re.findall(self.each, named["list"].partition("OOB ")[0])
        for value in values:
            tally.note(kind, value.strip().replace("/ROCE", "/RoCE"), lines)


class Messages(Value, frozen=True, kw_only=True):
    """The content of the file: literals of the lines, and messages."""

    schema: Literal[1]
    literals: tuple[str, ...]
    messages: tuple[Message, ...]


@cache
def nccl_lines() -> Messages:
    """Return the kinds of lines that come with the package."""
    return load_data("nccl_lines.yaml", Messages)


_LARGEST = frozenset({"ranks", "nodes"})
_CHANNELS = (
    b" via NET/",
    b" via P2P/",
    b" via SHM/",
    b" via direct shared memory",
)
_VIA = b" via "
_OURS = b"CCL"
# Anonymised names may be in angle brackets; some logs have no thread number.
_WHO = re.compile(rb"(?<![\w.-])([\w.-]{1,64})>?(?::\d{1,9}){1,2} \[-?\d{1,4}\] ")
_WHO_TEXT = re.compile(_WHO.pattern.decode())
_CHANNEL = re.compile(rb" Channel \d{1,5}(?:/\d{1,5})? : ")
# `.. 3[1b000] -> 4[3d000] [send] via NET/IB/2(5)/GDRDMA/Shared` -> kind, ends, GPUDirect.
#
# All versions: `Ring` and `Channel`, with and without a connection's number, a device in brackets
# (bus or number), a proxy rank (PXN) in parentheses, and the text that RCCL adds at the end.

_CHANNEL_VIA = re.compile(
    rb"via (?:"
    rb"NET/(?P<net>[^/:\r\n]{1,48})/(?P<nic>\d{1,6})(?:\(\d{1,7}\))?(?P<gdr>/GDRDMA)?"
    rb"|P2P/(?P<p2p>direct pointer|IPC|CUMEM|MNNVL|indirect|[A-Za-z]{2,16}(?=[/\s]|\Z))"
    rb"|(?P<shm>SHM/|direct shared memory)"
    rb")"
)
_ENDS = re.compile(
    rb"(?P<sender>\d{1,7})(?:\[[0-9A-Fa-f]{1,16}\])? -> "
    rb"(?P<receiver>\d{1,7})(?:\[[0-9A-Fa-f]{1,16}\])?(?: \[(?P<role>send|receive)\])? $"
)
_HEAD = 96
_MOST_LINES = 30_000
# Size of the lines kept in memory [B].
_HELD = 1 << 24


class TransportReader:
    """Reads one log, block by block, for `records.dispatch`; `source` names the log in evidence.

    Equal lines of all ranks are counted and parsed once; so are lines that differ only in the
    number of the channel.
    """

    def __init__(self, source: str) -> None:
        known = nccl_lines()
        self.literals = (*_CHANNELS, *(one.encode() for one in known.literals))
        self._messages = known.messages
        self._tally = Tally()
        self._source = source
        self._alike: dict[bytes, list[int]] = {}
        self._held = 0

    @property
    def tally(self) -> Tally:
        """The counts of the lines so far."""
        for raw, (number, times) in self._alike.items():
            if any(literal in raw for literal in self.literals):
                for part in raw.split(b"\r"):
                    self._read(part, number, times)
        self._alike.clear()
        self._held = 0
        return self._tally

    def read_block(self, block: Block, number: int) -> None:
        """Count the lines of a block; interleaved lines count as several."""
        text, alike, at = bytes(memoryview(block.data)[: block.end]), self._alike, 0
        if _VIA in text:
            text = _CHANNEL.sub(b" Channel : ", text)
        lines = text.split(b"\n")
        # In the order in which they are first seen.
        for raw, times in Counter(lines).items():
            known = alike.get(raw)
            if known is not None:
                known[1] += times
            elif _OURS in raw or _VIA in raw:
                at = lines.index(raw, at)
                alike[raw] = [number + at, times]
                self._held += len(raw)
                if len(alike) >= _MOST_LINES or self._held >= _HELD:
                    _ = self.tally

    def _read(self, raw: bytes, number: int, lines: int) -> None:
        if _VIA in raw:
            self._channels(raw, number, lines)
            # Unless another rank has written into it, the line of a channel contains no other text.
            if raw.count(b"NCCL ") == raw.count(_VIA) == 1:
                return
        self._statements(Line(raw, number), lines)

    def _channels(self, raw: bytes, number: int, lines: int) -> None:
        who = _WHO.search(raw)
        if who is None and b"NCCL INFO" not in raw and b" -> " not in raw:
            return
        host = who[1].decode("ascii", "replace") if who else ""
        self._tally.hosts[host] += lines
        # Interleaved lines have several.
        for match in _CHANNEL_VIA.finditer(raw):
            kind = self._channel(match, host, lines)
            self._tally.channels[kind] += lines
            self._first(kind, number)

    def _channel(self, match: re.Match[bytes], host: str, lines: int) -> str:
        """Return the kind of a channel; count the ends and the adapter of one over a network."""
        tally, via = self._tally, match.start()
        if match["p2p"]:
            return "P2P/" + match["p2p"].decode()
        if match["shm"]:
            return "SHM"
        text, gdr = match["net"].decode("utf-8", "replace"), bool(match["gdr"])
        network = f"NET/{text if text.isprintable() else '?'}"
        kind = f"{network}{'/GDRDMA' if gdr else ''}"
        if not gdr:
            tally.without_gdr[f"{host or '?'}:{network}/{match['nic'].decode()}"] += lines
        colon = match.string.rfind(b" : ", max(0, via - _HEAD), via)
        ends = _ENDS.match(match.string, colon + 3, via) if colon >= 0 else None
        if ends is None or ends["role"] is None:
            tally.elsewhere[kind] += lines
            return kind
        sends = ends["role"] == b"send"
        tally.ends[Ends(kind, int(ends["sender"]), int(ends["receiver"]), sends, host)] += lines
        if not sends:
            tally.counts["received"] += lines
            tally.counts["received by gdr"] += lines * gdr
        return kind

    def _statements(self, line: Line, lines: int) -> None:
        for host, text in _pieces(line.text):
            if host:
                self._tally.hosts[host] += lines
            for message in self._messages:
                match = message.compiled.search(text) if message.words in text else None
                if match is not None:
                    message.count(self._tally, match, lines)
                    self._first(message.kind, line.number)

    def _first(self, kind: str, number: int) -> None:
        if kind not in self._tally.first:
            self._tally.first[kind] = f"{self._source}:{number}"


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Split a line at the text of other ranks; yield the host and the message of each part."""
    starts = list(_WHO_TEXT.finditer(text))
    if not starts or starts[0].start() > 0:
        yield "", text[: starts[0].start()] if starts else text
    ends = [start.start() for start in starts[1:]]
    for start, end in zip(starts, [*ends, len(text)][: len(starts)], strict=True):
        yield start[1], text[start.end() : end]
