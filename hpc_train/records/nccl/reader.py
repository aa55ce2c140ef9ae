"""Lines of one log -> Tally; channels, of which there can be millions, by their bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.records.line import Line
from hpc_train.records.nccl.channels import Channel, channels_in
from hpc_train.records.nccl.messages import EVENTS, LITERALS, MESSAGES
from hpc_train.records.nccl.tally import Ends, Tally

_CHANNELS = (
    b" via NET/",
    b" via P2P/",
    b" via SHM/",
    b" via direct shared memory",
    b" via COLLNET/",
)
_INFO = b" NCCL INFO "
_VIA = b" via "
# Anonymised names may stand in angle brackets; some logs have no number of the thread.
_WHO = re.compile(rb"([\w.-]{1,64})>?(?::\d{1,9}){1,2} \[-?\d{1,4}\] ")
_WHO_TEXT = re.compile(_WHO.pattern.decode())
_MOST = 50_000


class TransportReader:
    """Reads one log; a reader for `records.dispatch`. `source` names the log in evidence.

    A rank prints a line for each of its channels that differs in the channel's number alone: such
    lines are counted as they come, and parsed once.
    """

    literals = (*_CHANNELS, *LITERALS)
    wants_next = False

    def __init__(self, source: str) -> None:
        self._tally = Tally()
        self._source = source
        self._alike: dict[tuple[bytes, bytes], list[int]] = {}

    @property
    def tally(self) -> Tally:
        """What the lines so far add up to."""
        for (who, what), (number, lines) in self._alike.items():
            self._channels(who + _INFO + what, number, lines)
        self._alike.clear()
        return self._tally

    def read(self, line: Line) -> None:
        """Count what a line says; lines that ran into one another count as several."""
        raw = line.raw
        via = raw.find(_VIA)
        if via < 0:
            self._statements(line)
            return
        info = raw.find(_INFO, 0, via)
        if info > 0 and raw.find(b"NCCL ", info + 6) < 0 and raw.find(_VIA, via + 5) < 0:
            self._count(raw, info, via, line.number)
            return
        self._channels(raw, line.number, 1)
        self._statements(line)

    def _count(self, raw: bytes, info: int, via: int, number: int) -> None:
        key = raw[:info], raw[raw.rfind(b" : ", info, via) :]
        alike = self._alike.get(key)
        if alike is not None:
            alike[1] += 1
            return
        if len(self._alike) >= _MOST:
            _ = self.tally
        self._alike[key] = [number, 1]

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

    def _statements(self, line: Line) -> None:
        for event, name in EVENTS.items():
            if event in line.raw:
                self._tally.counts[name] += line.raw.count(event)
                self._first(name, line.number)
        for host, text in _pieces(line.text):
            if host:
                self._tally.hosts[host] += 1
            for message in MESSAGES:
                match = message.pattern.search(text) if message.words in text else None
                if match is not None:
                    for kind in message.take(self._tally, match, host):
                        self._first(kind, line.number)

    def _first(self, kind: str, number: int) -> None:
        if kind not in self._tally.first:
            self._tally.first[kind] = f"{self._source}:{number}"


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Take a line apart where another rank wrote into it: the host, and what it said."""
    starts = list(_WHO_TEXT.finditer(text))
    if not starts or starts[0].start() > 0:
        yield "", text[: starts[0].start()] if starts else text
    ends = [start.start() for start in starts[1:]]
    for start, end in zip(starts, [*ends, len(text)][: len(starts)], strict=True):
        yield start[1], text[start.end() : end]
