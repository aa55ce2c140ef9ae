"""Tally: counts of the lines of one or several logs, before they are evaluated."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from hpc_train.logs.line import Line
from hpc_train.logs.line_dispatch import Block

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


# Blocks of one log -> lines of NCCL -> Tally; channels, possibly millions, are parsed as bytes.


class MessageMatch(NamedTuple):
    """A match, the host that printed it, and the number of equal lines."""

    match: re.Match[str]
    host: str
    lines: int


# Adds a message to a tally, and yields the kinds of fact in it.
MessageCounter = Callable[[Tally, MessageMatch], Iterator[str]]


class Message(NamedTuple):
    """A kind of line: its literal, its pattern, and the function that counts a match."""

    words: str
    pattern: re.Pattern[str]
    take: MessageCounter


def _as(kind: str) -> MessageCounter:
    def count(tally: Tally, found: MessageMatch) -> Iterator[str]:
        tally.note(kind, found.match[1].strip(), found.lines)
        yield kind

    return count


def _seat(tally: Tally, found: MessageMatch) -> Iterator[str]:
    ranks, bus = int(found.match["ranks"]), found.match["bus"] or ""
    tally.raise_to("ranks", ranks)
    tally.seat(RankPlacement(ranks, int(found.match["rank"]), found.host, bus), found.lines)
    yield "ranks"


def _nodes(tally: Tally, found: MessageMatch) -> Iterator[str]:
    tally.raise_to("ranks", int(found.match["ranks"]))
    tally.raise_to("nodes", int(found.match["nodes"]))
    yield "nodes"


def _seconds(tally: Tally, found: MessageMatch) -> Iterator[str]:
    tally.raise_to("init_s", float(found.match["total"]))
    yield "init_s"


def _adapters(tally: Tally, found: MessageMatch) -> Iterator[str]:
    for name, layer, sharp in _ADAPTER.findall(found.match["list"].partition("OOB ")[0]):
        tally.note("adapter", f"{name}/{'RoCE' if layer == 'ROCE' else layer}{sharp}", found.lines)
        yield "adapter"


def _link(tally: Tally, found: MessageMatch) -> Iterator[str]:
    name = f"{found.match['name']}:{found.match['port']}"
    if found.match["speed"]:
        tally.note("speed", f"{name} {int(found.match['speed'])}", found.lines)
        yield "speed"
    else:
        tally.note("adapter", f"{name}/{found.match['layer']}", found.lines)
        yield "adapter"


def _interfaces(tally: Tally, found: MessageMatch) -> Iterator[str]:
    for name in _INTERFACE.findall(found.match["list"]):
        tally.note("interface", name, found.lines)
        yield "interface"


def _direct(tally: Tally, found: MessageMatch) -> Iterator[str]:
    kind = f"gdr {found.match['state'].lower()}"
    tally.note(kind, found.match["device"], found.lines)
    yield kind


def _environment(tally: Tally, found: MessageMatch) -> Iterator[str]:
    # A number ends in a full stop, a text does not.
    value = _NUMBER.sub(r"\1", found.match["value"].strip())
    tally.note(f"env {found.match['name']}", value, found.lines)
    yield "env"


_NUMBER = re.compile(r"^(-?\d+)\.$")
_ADAPTER = re.compile(r"([\w.-]{1,64}:\d{1,4})/(IB|RoCE|ROCE|iWARP)(/SHARP)?")
_INTERFACE = re.compile(r"([\w.-]{1,32}):[^\s<]{2,64}<\d{1,5}>")
_RANK = r"rank (?P<rank>\d{1,7}) n[rR]anks (?P<ranks>\d{1,7}) "
_BUS = r"cudaDev -?\d+(?: nvmlDev -?\d+)?(?: busId (?P<bus>[0-9a-fA-F:.]{1,16}))?"
_NAME = r"([A-Za-z][\w.-]{0,31}(?: (?:[A-Z]|v\d)[\w.-]{0,31}){0,4})"
_VERSION = r"(\d{1,3}\.\d{1,3}(?:\.\d{1,3})?(?:\+(?:cuda|hip)\d{1,3}\.\d{1,3}|-[\w.-]{1,40})?)"
_DEVICE = r"for HCA \d{1,4} ?:? '?(?P<device>[\w.-]{1,64})"
_ABSENT = r"(No plugin found|Could not find|Plugin load .{1,200}? returned|Using internal net)"

_FACTS: tuple[tuple[str, str, str], ...] = (
    ("version", "CCL version", rf"CCL version(?: : | ){_VERSION}"),
    ("rccl", "RCCL version", r"(R)CCL version"),
    ("network", "Using ", rf"Using (?:network|internal Network) {_NAME}\s*$"),
    ("plugin", "Loaded net plugin", rf"Loaded net plugin {_NAME}(?: \(v?\d+\))?\s*$"),
    ("plugin", "P2P plugin", rf"P2P plugin (?:v\d+ )?{_NAME}\s*$"),
    ("plugin", "NET plugin", rf"Initialized NET plugin (?!Socket\b|IB\b){_NAME}\s*$"),
    ("plugin missing", "NET/Plugin", rf"NET/Plugin ?: {_ABSENT}"),
    ("ofi", "aws-ofi-", r"(?:Using|Initializing) aws-ofi-[nr]ccl ([\w.+-]{1,40})"),
    ("provider", "elected", r"Selected [Pp]rovider is ([\w;:-]{1,40})"),
    ("protocol", "transport protocol", r"Using transport protocol ([A-Z]{2,16})"),
    ("nvls", "NVLS multicast", r"NVLS multicast support is (not available|unavailable|available)"),
    ("gdr far", "GPU Direct RDMA", r"GPU Direct RDMA Disabled for GPU .{1,80}distance (\d+) >"),
    # The size if NVLink connects all GPUs of the only node with one another.
    ("nvlink by size", "P2P Chunksize", r"P2P Chunksize set to (524288)\b"),
    ("nvlink", "NVL[", r"\+ (NVL)\[\d"),
    ("nvlink", "XGMI[", r"\+ (XGMI)\[\d"),
    ("gdr refused", "NET/OFI", r"NET/OFI .{0,80}\b(GDR not supported|disabling GDR)"),
)
_OTHERS: tuple[tuple[MessageCounter, str, str], ...] = (
    (_seat, "Init COMPLETE", _RANK + _BUS),
    (_nodes, "nNodes", _RANK + r"nNodes (?P<nodes>\d{1,7})"),
    (_seconds, "Init timings", r"nranks \d{1,7} total (?P<total>\d{1,9}\.\d{1,9})"),
    (_adapters, ": Using ", r"NET/(?!Socket|OFI)[\w .-]{1,24}?: Using (?P<list>.{1,8000})"),
    (
        _link,
        "NET/IB",
        # In NCCL 2.3 this is the list; from 2.23 on it precedes the list, with a speed [Mbit/s].
        r"NET/IB ?: \[\d{1,4}\] (?P<name>[\w.-]{1,64})(?::uverbs\d{1,4})?:(?P<port>\d{1,4})"
        r"/(?P<layer>IB|RoCE)\b(?: provider=\w{1,32} speed=(?P<speed>\d{1,9})\b)?",
    ),
    (_interfaces, ": Using ", r"(?:NET/Socket|Bootstrap) ?: Using (?P<list>.{1,2000})"),
    (
        _direct,
        "GPU Direct RDMA",
        r"GPU Direct RDMA (?:\([^)]{1,32}\) )?(?P<state>[Ee]nabled|[Dd]isabled) " + _DEVICE,
    ),
    (
        _environment,
        " to ",
        r"(?P<name>(?:N|R|OFI_N)CCL_\w{1,64}) set (?:by environment )?to (?P<value>.{0,300})",
    ),
)
MESSAGES = (
    *(Message(words, re.compile(pattern), _as(kind)) for kind, words, pattern in _FACTS),
    *(Message(words, re.compile(pattern), count) for count, words, pattern in _OTHERS),
)
EVENTS = {
    b"Connected all rings": "rings",
    b"Connected all trees": "trees",
    b"Connected NVLS tree": "nvls trees",
    b"Init COMPLETE": "init",
    b"NCCL WARN": "warnings",
}
LITERALS = (
    *EVENTS,
    b"NCCL version ",
    b"RCCL version",
    b"Using network ",
    b"Using internal Network ",
    b"NET/IB: [",
    b"NET/IB : [",
    b"GDR not supported",
    b"disabling GDR",
    b" nNodes ",
    b"Init timings",
    b": Using ",
    b"GPU Direct RDMA",
    b"CCL_",
    b"Loaded net plugin",
    b" P2P plugin ",
    b" NET plugin ",
    b"NET/Plugin",
    b"aws-ofi-",
    b"Selected Provider is ",
    b"Selected provider is ",
    b"Using transport protocol ",
    b"NVLS multicast support",
    b"P2P Chunksize set",
    b" + NVL[",
    b" + XGMI[",
)


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
_MOST_LINES = 30_000
# Size of the lines kept in memory [B].
_HELD = 1 << 24


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


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Split a line at the text of other ranks; yield the host and the message of each part."""
    starts = list(_WHO_TEXT.finditer(text))
    if not starts or starts[0].start() > 0:
        yield "", text[: starts[0].start()] if starts else text
    ends = [start.start() for start in starts[1:]]
    for start, end in zip(starts, [*ends, len(text)][: len(starts)], strict=True):
        yield start[1], text[start.end() : end]


# `.. 3[1b000] -> 4[3d000] [send] via NET/IB/2(5)/GDRDMA/Shared` -> kind, ends, GPUDirect, proxy.
#
# All versions: `Ring` and `Channel`, with and without a connection's number, a device in brackets
# (bus or number), a proxy rank (PXN) in parentheses, and the text that RCCL adds at the end.

_CHANNEL_VIA = re.compile(
    rb"via (?:"
    rb"NET/(?P<net>[^/:\r\n]{1,48})/(?P<nic>\d{1,6})(?P<proxy>\(\d{1,7}\))?(?P<gdr>/GDRDMA)?"
    rb"|P2P/(?P<p2p>direct pointer|IPC|CUMEM|MNNVL|indirect|[A-Za-z]{2,16}(?=[/\s]|\Z))"
    rb"|(?P<shm>SHM/|direct shared memory)"
    rb"|COLLNET/(?P<coll>[^/:\r\n]{1,48})/\d{1,6}(?P<coll_gdr>/GDRDMA)?"
    rb")"
)
_ENDS = re.compile(
    rb"(?P<sender>\d{1,7})(?:\[[0-9A-Fa-f]{1,16}\])? -> "
    rb"(?P<receiver>\d{1,7})(?:\[[0-9A-Fa-f]{1,16}\])?(?: \[(?P<role>send|receive)\])? $"
)
_HEAD = 96


class Channel(NamedTuple):
    """The kind of a channel; of a network channel also the adapter and, if complete, the ends."""

    kind: str
    network: str = ""
    nic: str = ""
    gdr: bool = False
    proxied: bool = False
    ends: tuple[int, int, bool] | None = None


def channels_in(raw: bytes) -> Iterator[Channel]:
    """Yield every channel of a line; interleaved lines have several."""
    for match in _CHANNEL_VIA.finditer(raw):
        if match["p2p"]:
            yield Channel("P2P/" + match["p2p"].decode())
        elif match["shm"]:
            yield Channel("SHM")
        elif match["coll"]:
            yield Channel(_kind("COLLNET", match["coll"], match["coll_gdr"]))
        else:
            yield _network(match, _ends(raw, match.start()))


def _network(match: re.Match[bytes], ends: tuple[int, int, bool] | None) -> Channel:
    return Channel(
        kind=_kind("NET", match["net"], match["gdr"]),
        network=_clean(match["net"]),
        nic=match["nic"].decode(),
        gdr=bool(match["gdr"]),
        proxied=bool(match["proxy"]),
        ends=ends,
    )


def _kind(family: str, name: bytes, gdr: bytes | None) -> str:
    return f"{family}/{_clean(name)}{'/GDRDMA' if gdr else ''}"


def _clean(name: bytes) -> str:
    text = name.decode("utf-8", "replace")
    return text if text.isprintable() else "?"


def _ends(raw: bytes, via: int) -> tuple[int, int, bool] | None:
    colon = raw.rfind(b" : ", max(0, via - _HEAD), via)
    match = _ENDS.match(raw, colon + 3, via) if colon >= 0 else None
    if match is None or match["role"] is None:
        return None
    return int(match["sender"]), int(match["receiver"]), match["role"] == b"send"
