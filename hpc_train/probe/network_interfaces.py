"""`ip -j addr` and /sys/class -> network interfaces and adapters' ports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from hpc_train.model.hardware import Layer, Link, Port
from hpc_train.probe.run_program import whole

LinkKind = Literal["ethernet", "infiniband", "loopback", "other"]

_KINDS: dict[str, LinkKind] = {
    "ether": "ethernet",
    "1": "ethernet",
    "infiniband": "infiniband",
    "32": "infiniband",
    "loopback": "loopback",
    "772": "loopback",
}
_MADE_UP = re.compile(
    r"(docker|veth|virbr|br-|cni|flannel|cali|tun|tap|dummy|ifb|lxc|podman|kube|vxlan|tailscale|wg)"
)
# They combine physical interfaces.
_JOINED = ("bond", "team")
_RATE = re.compile(r"^([0-9]+)(\.[0-9]+)? Gb/sec")


def links(addresses: str, interfaces: str) -> tuple[Link, ...]:
    """Combine the output of `ip` and /sys, which may differ inside a network namespace."""
    known = {line.split()[0]: line.split() for line in interfaces.splitlines() if line.strip()}
    known = {name: cells for name, cells in known.items() if len(cells) == 5}
    found = [_from_ip(item, known.get(str(item.get("ifname")))) for item in _items(addresses)]
    return tuple(found) or tuple(_from_sys(*cells) for cells in known.values())


def ports(text: str) -> tuple[Port, ...]:
    """Read one line for each port: adapter|number|state|rate|link_layer|driver."""
    rows = (line.split("|") for line in text.splitlines())
    return tuple(_port(row) for row in rows if len(row) == 6)


def _port(row: list[str]) -> Port:
    adapter, number, state, rate, layer, driver = row
    known: dict[str, Layer] = {"InfiniBand": "InfiniBand", "Ethernet": "Ethernet"}
    speed = _RATE.match(rate)
    return Port(
        adapter=adapter,
        number=whole(number) or 1,
        active="ACTIVE" in state,
        gbps=whole(speed[1]) if speed else None,
        layer=known.get(layer, "other"),
        driver=driver,
    )


def _items(text: str) -> Iterator[dict[str, Any]]:
    try:
        document: Any = msgspec.json.decode(text.encode())
    except msgspec.DecodeError:
        return
    for item in document if isinstance(document, list) else ():
        # Some versions print an empty object for filtered interfaces.
        if isinstance(item, dict) and isinstance(item.get("ifname"), str):
            yield item


def _from_ip(item: dict[str, Any], known: list[str] | None) -> Link:
    name, flags = item["ifname"], item.get("flags") or ()
    given = item.get("addr_info") or ()
    local = [str(one["local"]) for one in given if isinstance(one, dict) and "local" in one]
    return Link(
        name=name,
        # A tunnel or a loopback has no state.
        up=item.get("operstate") == "UP" or (item.get("operstate") == "UNKNOWN" and "UP" in flags),
        kind=_KINDS.get(str(item.get("link_type")), "other"),
        addresses=tuple(local),
        mbps=_speed(known[3]) if known else None,
        virtual=_MADE_UP.match(name) is not None,
    )


def _from_sys(name: str, kind: str, state: str, speed: str, virtual: str) -> Link:
    return Link(
        name=name,
        up=state in ("up", "unknown"),
        kind=_KINDS.get(kind, "other"),
        mbps=_speed(speed),
        virtual=(virtual == "1" and not name.startswith(_JOINED))
        or _MADE_UP.match(name) is not None,
    )


def _speed(text: str) -> int | None:
    """Return the speed; -1, or 2**32 - 1, means that no cable is connected."""
    speed = whole(text)
    return speed if speed and speed < 10_000_000 else None
