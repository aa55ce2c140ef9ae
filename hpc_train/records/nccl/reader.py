"""Lines of one log -> Tally; channels, of which there can be millions, by their bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hpc_train.records.blocks import Block, Stream, blocks
from hpc_train.records.line import Line
from hpc_train.records.literals import Occurrence, finder
from hpc_train.records.nccl.channels import Channel, channels_in
from hpc_train.records.nccl.messages import EVENTS, LITERALS, MESSAGES, Said
from hpc_train.records.nccl.tally import Ends, Tally

_CHANNELS = (
    b" via NET/",
    b" via P2P/",
    b" via SHM/",
    b" via direct shared memory",
    b" via COLLNET/",
)
_LITERALS = (*_CHANNELS, *LITERALS)
_INFO = b" NCCL INFO "
_VIA = b" via "
# Anonymised names may stand in angle brackets; some logs have no number of the thread.
_WHO = re.compile(rb"([\w.-]{1,64})>?(?::\d{1,9}){1,2} \[-?\d{1,4}\] ")
_WHO_TEXT = re.compile(_WHO.pattern.decode())
_MOST = 50_000
# Of a longer line, so much behind what was found is seen at once.
_AFTER = 1 << 16


def tally_of(stream: Stream, source: str) -> Tally:
    """Count what one log says; `source` names it in evidence.

    Of the lines of a rank many are alike: they are told apart by their bytes, and read once.
    """
    find = finder(_LITERALS)
    alike = _Alike(source)
    number = 1
    for block in blocks(stream):
        number = alike.see(block, find(memoryview(block.data)[: block.end]), number)
    return alike.tally


class _Alike:
    """Lines that differ in nothing but the number of a channel: the first one, and how many."""

    def __init__(self, source: str) -> None:
        self._reader = _Reader(source)
        self._first: list[Line] = []
        self._counts: dict[bytes | tuple[bytes, bytes], list[int]] = {}

    @property
    def tally(self) -> Tally:
        """What all lines so far add up to."""
        for line, (lines,) in zip(self._first, self._counts.values(), strict=True):
            self._reader.read(line, lines)
        self._first.clear()
        self._counts.clear()
        return self._reader.tally

    def see(self, block: Block, found: Sequence[Occurrence], number: int) -> int:
        """Take the lines in which something was found; return the number of the next block."""
        data, size = block
        view, returns = memoryview(data), data.find(b"\r", 0, size) >= 0
        counted = stop = 0
        for at, _ in found:
            if at < stop:
                continue
            start = data.rfind(b"\n", stop, at) + 1 or stop
            limit = at + _AFTER if at + _AFTER < size else size
            stop = (data.find(b"\n", at, limit) + 1 or limit + 1) - 1
            if returns:
                start = data.rfind(b"\r", start, at) + 1 or start
                stop = (data.find(b"\r", at, stop) + 1 or stop + 1) - 1
            raw = bytes(view[start:stop])
            key = _key(raw)
            count = self._counts.get(key)
            if count is not None:
                count[0] += 1
                continue
            number += data.count(b"\n", counted, start)
            counted = start
            if len(self._first) >= _MOST:
                _ = self.tally
            self._first.append(Line(raw, number))
            self._counts[key] = [1]
        return number + data.count(b"\n", counted, size)


def _key(raw: bytes) -> bytes | tuple[bytes, bytes]:
    """Return what lines that are alike have in common: of a channel, all but its number."""
    if _VIA not in raw:
        return raw
    head, _, what = raw.partition(b" : ")
    return head[: head.rfind(b" ")], what


class _Reader:
    """Reads lines of one log; a line stands for several that are alike."""

    def __init__(self, source: str) -> None:
        self.tally = Tally()
        self._source = source
        self._numbers: dict[str, int] = {}

    def read(self, line: Line, lines: int) -> None:
        """Count what a line says; lines that ran into one another count as several."""
        raw, via = line.raw, line.raw.find(_VIA)
        if via >= 0:
            self._channels(raw, line.number, lines)
        info = raw.find(_INFO)
        again = raw.find(b"NCCL ", info + 6) >= 0 or raw.find(_VIA, via + 5) >= 0
        # Where no other rank wrote into it, a channel's line says nothing else.
        if again or not 0 < info < via:
            self._statements(line, lines)

    def _channels(self, raw: bytes, number: int, lines: int) -> None:
        who = _WHO.search(raw)
        if who is None and b"NCCL INFO" not in raw and b" -> " not in raw:
            return
        host = who[1].decode("ascii", "replace") if who else ""
        self.tally.hosts[host] += lines
        for channel in channels_in(raw):
            self.tally.channels[channel.kind] += lines
            self._first(channel.kind, number)
            if channel.network:
                self._network(channel, host, lines)

    def _network(self, channel: Channel, host: str, lines: int) -> None:
        tally = self.tally
        tally.counts["pxn"] += lines * channel.proxied
        if not channel.gdr:
            tally.without_gdr[f"{host or '?'}:NET/{channel.network}/{channel.nic}"] += lines
        if channel.ends is None:
            tally.elsewhere[channel.kind] += lines
            return
        sender, receiver, sends = channel.ends
        tally.connect(Ends(channel.kind, sender, receiver, sends, host), lines)
        if not sends:
            tally.counts["received"] += lines
            tally.counts["received by gdr"] += lines * channel.gdr

    def _statements(self, line: Line, lines: int) -> None:
        for event, name in EVENTS.items():
            if event in line.raw:
                self.tally.counts[name] += line.raw.count(event) * lines
                self._first(name, line.number)
        for host, text in _pieces(line.text):
            if host:
                self.tally.hosts[host] += lines
            for message in MESSAGES:
                match = message.pattern.search(text) if message.words in text else None
                if match is not None:
                    for kind in message.take(self.tally, Said(match, host, lines)):
                        self._first(kind, line.number)

    def _first(self, kind: str, number: int) -> None:
        if number < self._numbers.get(kind, number + 1):
            self._numbers[kind] = number
            self.tally.first[kind] = f"{self._source}:{number}"


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Take a line apart where another rank wrote into it: the host, and what it said."""
    starts = list(_WHO_TEXT.finditer(text))
    if not starts or starts[0].start() > 0:
        yield "", text[: starts[0].start()] if starts else text
    ends = [start.start() for start in starts[1:]]
    for start, end in zip(starts, [*ends, len(text)][: len(starts)], strict=True):
        yield start[1], text[start.end() : end]
