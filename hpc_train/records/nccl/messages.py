"""Messages of NCCL other than channels, in the wording of all its versions -> Tally."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from hpc_train.records.nccl.tally import RankPlacement, Tally


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
