"""`.. 3[1b000] -> 4[3d000] [send] via NET/IB/2(5)/GDRDMA/Shared` -> kind, ends, GPUDirect, proxy.

All versions: `Ring` and `Channel`, with and without a connection's number, a device in brackets
(bus or number), a proxy rank (PXN) in parentheses, and the text that RCCL adds at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_VIA = re.compile(
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
    for match in _VIA.finditer(raw):
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
