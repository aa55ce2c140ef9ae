"""Lines of one log -> Tally; channels, of which there can be millions, by their bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.records.line import Line
from hpc_train.records.nccl.channels import Channel, channels_in
from hpc_train.records.nccl.messages import EVENTS, LITERALS, MESSAGES
from hpc_train.records.nccl.tally import Ends, Tally

_CHANNELS = (b" via NET/", b" via P2P/", b" via SHM/", b" via direct shared memory",
             b" via COLLNET/")  # fmt: skip
# Anonymised names may stand in angle brackets.
_WHO = re.compile(rb"([\w.-]{1,64})>?:\d{1,9}:\d{1,9} \[-?\d{1,4}\] ")
_WHO_TEXT = re.compile(_WHO.pattern.decode())


class TransportReader:
    """Reads one log; a reader for `records.dispatch`. `source` names the log in evidence."""

    literals = (*_CHANNELS, *LITERALS)
    wants_next = False

    def __init__(self, source: str) -> None:
        self.tally = Tally()
        self._source = source

    def read(self, line: Line) -> None:
        """Count what a line says; lines that ran into one another count as several."""
        raw = line.raw
        if b" via " in raw:
            self._channels(raw, line.number)
        for event, name in EVENTS.items():
            if event in raw:
                self.tally.counts[name] += raw.count(event)
                self._first(name, line.number)
        if b"Channel " not in raw or b" via " not in raw:
            self._messages(line)

    def _channels(self, raw: bytes, number: int) -> None:
        who = _WHO.search(raw)
        if who is None and b"NCCL INFO" not in raw and b" -> " not in raw:
            return
        host = who[1].decode("ascii", "replace") if who else ""
        self.tally.hosts[host] += 1
        for channel in channels_in(raw):
            self.tally.channels[channel.kind] += 1
            self._first(channel.kind, number)
            if channel.network:
                self._network(channel, host)

    def _network(self, channel: Channel, host: str) -> None:
        tally = self.tally
        tally.counts["pxn"] += channel.proxied
        if channel.ends is None:
            tally.elsewhere[channel.kind] += 1
            return
        sender, receiver, sends = channel.ends
        tally.connect(Ends(channel.kind, sender, receiver, sends, host))
        if not channel.gdr:
            tally.without_gdr[f"{host or '?'}:NET/{channel.network}/{channel.nic}"] += 1
        if not sends:
            tally.counts["received"] += 1
            tally.counts["received by gdr"] += channel.gdr

    def _messages(self, line: Line) -> None:
        for host, text in _pieces(line.text):
            if host:
                self.tally.hosts[host] += 1
            for message in MESSAGES:
                if message.words not in text:
                    continue
                match = message.pattern.search(text)
                if match is not None:
                    for kind in message.take(self.tally, match, host):
                        self._first(kind, line.number)

    def _first(self, kind: str, number: int) -> None:
        if kind not in self.tally.first:
            self.tally.first[kind] = f"{self._source}:{number}"


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Take a line apart where another rank wrote into it: the host, and what it said."""
    starts = list(_WHO_TEXT.finditer(text))
    if not starts or starts[0].start() > 0:
        yield "", text[: starts[0].start()] if starts else text
    ends = [start.start() for start in starts[1:]]
    for start, end in zip(starts, [*ends, len(text)][: len(starts)], strict=True):
        yield start[1], text[start.end() : end]
