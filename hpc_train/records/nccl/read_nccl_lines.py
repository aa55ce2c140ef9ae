"""Blocks of one log -> lines of NCCL -> Tally; channels, possibly millions, are parsed as bytes."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from hpc_train.records.line import Line
from hpc_train.records.literal_positions import Find, finder
from hpc_train.records.log_blocks import Block
from hpc_train.records.nccl.channels import Channel, channels_in
from hpc_train.records.nccl.messages import EVENTS, LITERALS, MESSAGES, MessageMatch
from hpc_train.records.nccl.tally import Ends, Tally

_CHANNELS = (
    b" via NET/",
    b" via P2P/",
    b" via SHM/",
    b" via direct shared memory",
    b" via COLLNET/",
)
_VIA = b" via "
_OURS = b"CCL"
# Anonymised names may be in angle brackets; some logs have no thread number.
_WHO = re.compile(rb"(?<![\w.-])([\w.-]{1,64})>?(?::\d{1,9}){1,2} \[-?\d{1,4}\] ")
_WHO_TEXT = re.compile(_WHO.pattern.decode())
_CHANNEL = re.compile(rb" Channel \d{1,5}(?:/\d{1,5})? : ")
_MOST = 30_000
# Size of the lines kept in memory [B].
_HELD = 1 << 24
# Of a longer line, only the parts around its literals are read.
_PART = 1 << 16

_Printed = tuple[bytes, int, int]
# A search hit costs as much as a few lines that are only counted.
_LENGTH = 256


class TransportReader:
    """Reads one log, block by block, for `records.dispatch`; `source` names the log in evidence.

    Equal lines of all ranks are counted and parsed once; so are lines that differ only in the
    number of the channel.
    """

    literals = (*_CHANNELS, *LITERALS)

    def __init__(self, source: str) -> None:
        self._tally = Tally()
        self._source = source
        self._alike: dict[bytes, list[int]] = {}
        self._held = 0
        self._thin = False

    @property
    def tally(self) -> Tally:
        """The counts of the lines so far."""
        for raw, number, times in _with_literal(
            [(raw, first, times) for raw, (first, times) in self._alike.items()]
        ):
            for part in raw.split(b"\r"):
                self._read(part, number, times)
        self._alike.clear()
        self._held = 0
        return self._tally

    def read_block(self, block: Block, number: int) -> None:
        """Count the lines of a block; interleaved lines count as several."""
        thin = self._thin
        filtered = lines_with(finder(self.literals), block) if thin else all_lines(block)
        text = filtered.joined
        if _VIA in text:
            text = _CHANNEL.sub(b" Channel : ", text)
        strangers = self._count(text.split(b"\n"), _LineNumbers(block, number, filtered.starts))
        self._thin = filtered.worth_it(block) if thin else strangers

    def _count(self, lines: Sequence[bytes], numbers: _LineNumbers) -> bool:
        """Count lines; return whether most of them are not from NCCL, and differ."""
        alike, at, ours, others = self._alike, 0, 0, 0
        # In the order in which they are first seen.
        for raw, times in Counter(lines).items():
            known = alike.get(raw)
            if known is not None:
                known[1] += times
            elif _OURS in raw or _VIA in raw:
                at = lines.index(raw, at)
                alike[raw] = [numbers.of(at), times]
                self._held += len(raw)
                if len(alike) >= _MOST or self._held >= _HELD:
                    _ = self.tally
            else:
                others += 1
                continue
            ours += times
        return others > ours

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
        for channel in channels_in(raw):
            self._tally.channels[channel.kind] += lines
            self._first(channel.kind, number)
            if channel.network:
                self._network(channel, host, lines)

    def _network(self, channel: Channel, host: str, lines: int) -> None:
        tally = self._tally
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
                self._tally.counts[name] += line.raw.count(event) * lines
                self._first(name, line.number)
        for host, text in _pieces(line.text):
            if host:
                self._tally.hosts[host] += lines
            for message in MESSAGES:
                match = message.pattern.search(text) if message.words in text else None
                if match is not None:
                    for kind in message.take(self._tally, MessageMatch(match, host, lines)):
                        self._first(kind, line.number)

    def _first(self, kind: str, number: int) -> None:
        if kind not in self._tally.first:
            self._tally.first[kind] = f"{self._source}:{number}"


def _with_literal(printed: Sequence[_Printed]) -> Iterator[_Printed]:
    """Drop the lines that contain none of the literals."""
    parts = [
        (raw[start : start + _PART], number, times)
        for raw, number, times in printed
        for start in range(0, len(raw), _PART)
    ]
    ends = list(accumulate(len(raw) + 1 for raw, _, _ in parts))
    text = b"\n".join(raw for raw, _, _ in parts)
    found = finder(TransportReader.literals)(memoryview(text))
    for number in dict.fromkeys(bisect_right(ends, end) for end, _ in found):
        yield parts[number]


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Split a line at the text of other ranks; yield the host and the message of each part."""
    starts = list(_WHO_TEXT.finditer(text))
    if not starts or starts[0].start() > 0:
        yield "", text[: starts[0].start()] if starts else text
    ends = [start.start() for start in starts[1:]]
    for start, end in zip(starts, [*ends, len(text)][: len(starts)], strict=True):
        yield start[1], text[start.end() : end]


class FilteredLines(NamedTuple):
    """Lines, and the offset of each in the block [B]; None if these are all its lines."""

    joined: bytes
    starts: Sequence[int] | None = None

    def worth_it(self, block: Block) -> bool:
        """Whether the lines are few enough for filtering to save time."""
        return self.starts is not None and len(self.starts) * _LENGTH < block.end


def lines_with(find: Find, block: Block) -> FilteredLines:
    """Return the lines of a block that contain a literal."""
    text, lines, starts, stop = bytes(memoryview(block.data)[: block.end]), [], [], -1
    for at, _ in find(memoryview(text)):
        if at > stop:
            start = text.rfind(b"\n", stop + 1, at) + 1 or stop + 1
            stop = text.find(b"\n", at)
            stop = len(text) if stop < 0 else stop
            lines.append(text[start:stop])
            starts.append(start)
    return FilteredLines(b"\n".join(lines), starts)


def all_lines(block: Block) -> FilteredLines:
    """Return all lines of a block."""
    return FilteredLines(bytes(memoryview(block.data)[: block.end]))


class _LineNumbers:
    """Counts the lines of a block before requested positions, one after the other."""

    def __init__(self, block: Block, first: int, starts: Sequence[int] | None) -> None:
        self._data = block.data
        self._number = first
        self._starts = starts
        self._counted = 0

    def of(self, index: int) -> int:
        """Return the number of a line in the log."""
        if self._starts is None:
            return self._number + index
        start = self._starts[index]
        self._number += self._data.count(b"\n", self._counted, start)
        self._counted = start
        return self._number
