"""NodeTopology: how the GPUs, cores and network adapters of one machine are connected."""

import re
from collections.abc import Mapping

from hpc_train.base.value import Value

NVLINK, XGMI = "NVLink", "XGMI"
# From the shortest path to the longest, in the words of `nvidia-smi topo -m`.
DISTANCES: Mapping[str, str] = {
    "PIX": "at most one PCIe bridge",
    "PXB": "several PCIe bridges, no host bridge",
    "PHB": "PCIe and a host bridge, typically the processor",
    "NODE": "PCIe and the link between host bridges of a NUMA node",
    "SYS": "PCIe and the link between NUMA nodes",
}
# Drivers that do not count the links write NVL.
_MEANINGS = {**DISTANCES, "NVL": "NVLink", "C2C": "NVLink between processor and GPU"}
_RANGE = re.compile(r"\A([0-9]{1,6})(?:-([0-9]{1,6}))?\Z")


class NumaNode(Value, frozen=True, kw_only=True):
    """A NUMA node; `cpus` as Linux lists them (`0-15,128-143`), empty for memory alone."""

    number: int
    cpus: str = ""
    socket: int | None = None


class GpuPlace(Value, frozen=True, kw_only=True):
    """Place of a GPU: its NUMA node, its cores as Linux lists them, the distance of each NIC."""

    gpu: int
    numa: int | None = None
    cpus: str = ""
    nics: tuple[tuple[str, str], ...] = ()


class GpuLink(Value, frozen=True, kw_only=True):
    """The path between two GPUs: NVLink, XGMI (Infinity Fabric) or a key of `DISTANCES`.

    `count` is the number of bonded NVLinks, or of the hops over Infinity Fabric.
    """

    gpus: tuple[int, int]
    kind: str
    count: int = 1

    @property
    def label(self) -> str:
        """Return the short name: NV12, XGMI, XGMI2, PIX."""
        if self.kind == NVLINK:
            return f"NV{self.count}"
        return f"{self.kind}{self.count}" if self.count > 1 else self.kind

    @property
    def direct(self) -> bool:
        """Whether the GPUs are neighbours on a link that is for GPUs only."""
        return self.kind in (NVLINK, "NVL") or (self.kind == XGMI and self.count == 1)


class Nic(Value, frozen=True, kw_only=True):
    """A network adapter, and its NUMA node."""

    name: str
    numa: int | None = None


class NodeTopology(Value, frozen=True, kw_only=True):
    """One machine. Without a GPU tool, `gpus` and `links` are empty."""

    host: str = ""
    gpu_model: str = ""
    numa: tuple[NumaNode, ...] = ()
    gpus: tuple[GpuPlace, ...] = ()
    nics: tuple[Nic, ...] = ()
    links: tuple[GpuLink, ...] = ()

    def near_cpus(self, place: GpuPlace) -> str:
        """Return the cores nearest to a GPU: its own list, else that of its NUMA node."""
        own = next((one.cpus for one in self.numa if one.number == place.numa), "")
        return place.cpus or own

    def in_order(self) -> tuple[GpuPlace, ...]:
        """Return the GPUs in the order of their cores, which is that of bound local ranks."""
        last = 10**6

        def key(place: GpuPlace) -> tuple[int, int]:
            return min(cpu_numbers(self.near_cpus(place)), default=last), place.gpu

        return tuple(sorted(self.gpus, key=key))


def nearest_nics(place: GpuPlace) -> tuple[str, ...]:
    """Return the NICs with the shortest path to a GPU."""
    order = list(DISTANCES)
    known = [(order.index(level), name) for name, level in place.nics if level in order]
    best = min((rank for rank, _ in known), default=None)
    return tuple(name for rank, name in known if rank == best)


def cpu_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of a list of Linux, `0-3,8`; parts that are no range are left out."""
    found: list[int] = []
    for part in text.split(","):
        if match := _RANGE.match(part.strip()):
            first = int(match[1])
            found.extend(range(first, int(match[2] or first) + 1))
    return tuple(found)


def meaning(label: str) -> str:
    """Return what the label of a link means, as a noun."""
    if label in _MEANINGS:
        return _MEANINGS[label]
    if label.startswith("NV"):
        count = label.removeprefix("NV")
        return "one NVLink" if count == "1" else f"{count} NVLinks"
    count = label.removeprefix(XGMI)
    return f"Infinity Fabric, {count} hops" if count else "Infinity Fabric, direct"
