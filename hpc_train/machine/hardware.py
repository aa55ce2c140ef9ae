"""Hardware: one machine as its tools report it, and the settings of a profile that follow.

These are the fabric with its interfaces and adapters, and the order of the GPUs.
"""

import ipaddress
import re
from typing import Literal

from hpc_train.base.values import Value
from hpc_train.plans.binding import NodeTopology, cpu_numbers
from hpc_train.sites.partition import Fabric

Layer = Literal["InfiniBand", "Ethernet", "other"]
LinkKind = Literal["ethernet", "infiniband", "loopback", "other"]


class Processor(Value, frozen=True, kw_only=True):
    """Sockets, cores and threads."""

    model: str
    cpus: int
    sockets: int | None
    cores_per_socket: int | None
    threads_per_core: int | None


class Gpu(Value, frozen=True, kw_only=True):
    """A GPU, or half of one if the driver counts halves."""

    index: int
    name: str
    memory_mib: int | None = None
    driver: str = ""
    vendor: Literal["nvidia", "amd"] = "nvidia"


class Link(Value, frozen=True, kw_only=True):
    """A network interface; `virtual` if it has no physical port."""

    name: str
    up: bool
    kind: LinkKind
    addresses: tuple[str, ...] = ()
    mbps: int | None = None
    virtual: bool = False


class Port(Value, frozen=True, kw_only=True):
    """A port of a host adapter."""

    adapter: str
    number: int
    active: bool
    gbps: int | None
    layer: Layer
    driver: str = ""


class Torch(Value, frozen=True, kw_only=True):
    """The torch that `python` imports."""

    version: str
    backends: tuple[str, ...]
    cuda: str = ""
    hip: str = ""
    nccl: str = ""
    devices: int = 0


class Software(Value, frozen=True, kw_only=True):
    """Programs on the PATH, and their versions."""

    programs: tuple[str, ...] = ()
    modules: str = ""
    pyxis: bool = False
    mpirun: str = ""
    mpirun_knows_slurm: bool | None = None
    torch: Torch | None = None


class ProcessLimits(Value, frozen=True, kw_only=True):
    """Limits of the shell and the system; `memlock_kib` is -1 for unlimited."""

    memlock_kib: int | None = None
    open_files: int | None = None
    shm_mib: int | None = None
    memory_mib: int | None = None


class Hardware(Value, frozen=True, kw_only=True):
    """One machine; `unread` lists errors of tools."""

    host: str
    arch: str = ""
    processor: Processor | None = None
    gpus: tuple[Gpu, ...] = ()
    topology: NodeTopology = NodeTopology()
    links: tuple[Link, ...] = ()
    ports: tuple[Port, ...] = ()
    software: Software = Software()
    limits: ProcessLimits = ProcessLimits()
    unread: tuple[str, ...] = ()


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
        hcas=tuple(dict.fromkeys(port.adapter for port in ports))
        if fabric in ("infiniband", "roce")
        else (),
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

    def rank(link: Link) -> tuple[bool, int]:
        over_ib = link.kind == "infiniband" or _IB_NAME.match(link.name) is not None
        return not over_ib, -(link.mbps or 0)

    return tuple(sorted(links, key=rank)[:1])


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
