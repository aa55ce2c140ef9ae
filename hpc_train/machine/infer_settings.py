"""Hardware -> settings of a profile: the fabric with its interfaces and adapters, the GPU order."""

from __future__ import annotations

import ipaddress
import re

from hpc_train.base.value import Value
from hpc_train.machine.hardware import Hardware, Link, Port
from hpc_train.plans.node_topology import cpu_numbers
from hpc_train.sites.partition import Fabric

_IB_NAME = re.compile(r"ib[a-z0-9]")


class Guess(Value, frozen=True, kw_only=True):
    """The probable network; `others` are interfaces that are up but were not chosen."""

    fabric: Fabric | None
    interfaces: tuple[str, ...]
    hcas: tuple[str, ...]
    gbps: int | None
    others: tuple[str, ...]
    why: str


def guess(hardware: Hardware) -> Guess:
    """Derive the network from names, link layers and drivers, without a measurement."""
    links = usable(hardware)
    fabric, ports, why = _fabric(hardware, links)
    chosen = _chosen(links, fabric)
    speeds = [port.gbps for port in ports if port.gbps]
    cables = [link.mbps // 1000 for link in chosen if link.mbps]
    return Guess(
        fabric=fabric,
        interfaces=tuple(link.name for link in chosen),
        hcas=tuple(dict.fromkeys(port.adapter for port in ports)) if _verbs(fabric) else (),
        gbps=min(speeds or cables, default=None) or None,
        others=tuple(link.name for link in links if link not in chosen),
        why=why,
    )


def usable(hardware: Hardware) -> tuple[Link, ...]:
    """Return the interfaces that are up, physical, and have a network address.

    If only /sys is available, addresses are unknown and not required.
    """
    real = [one for one in hardware.links if one.up and one.kind != "loopback" and not one.virtual]
    with_address = tuple(one for one in real if any(map(_routed, one.addresses)))
    asked = any(one.addresses for one in hardware.links)
    return with_address if asked else tuple(real)


def _fabric(
    hardware: Hardware, links: tuple[Link, ...]
) -> tuple[Fabric | None, tuple[Port, ...], str]:
    active = tuple(port for port in hardware.ports if port.active)
    if any(link.name.startswith("hsn") for link in links):
        return "slingshot", (), "interfaces named hsn"
    if any(port.driver == "efa" for port in hardware.ports):
        return "efa", (), "an adapter with the driver efa"
    if ports := tuple(port for port in active if port.layer == "InfiniBand"):
        return "infiniband", ports, "active ports with the link layer InfiniBand"
    if ports := tuple(port for port in active if port.layer == "Ethernet"):
        return "roce", ports, "active RDMA ports with the link layer Ethernet"
    return ("ethernet", (), "no RDMA adapter") if links else (None, (), "no interface is up")


def _chosen(links: tuple[Link, ...], fabric: Fabric | None) -> tuple[Link, ...]:
    """Choose all interfaces of Slingshot, else one: InfiniBand, then the fastest."""
    if fabric == "slingshot":
        return tuple(link for link in links if link.name.startswith("hsn"))
    ranked = sorted(links, key=lambda link: (not _is_ib(link), -(link.mbps or 0)))
    return tuple(ranked[:1])


def _is_ib(link: Link) -> bool:
    return link.kind == "infiniband" or _IB_NAME.match(link.name) is not None


def _verbs(fabric: Fabric | None) -> bool:
    return fabric in ("infiniband", "roce")


def _routed(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return not (address.is_link_local or address.is_loopback)


def gpu_order(hardware: Hardware) -> tuple[int, ...]:
    """Return the GPUs in the order of their cores; empty if that is 0, 1, 2, … or is not known.

    Local rank 0 has the first cores, and each further rank has the next ones.
    """
    topology = hardware.topology
    found = sorted(one.gpu for one in topology.gpus)
    known = all(cpu_numbers(topology.near_cpus(one)) for one in topology.gpus)
    if not known or found != list(range(len(hardware.gpus))):
        return ()
    order = tuple(one.gpu for one in topology.in_order())
    return () if order == tuple(found) else order
