"""The sections of the probe script on processor, GPUs, NUMA nodes and PCI -> NodeTopology."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from hpc_train.base.processes import printable, whole
from hpc_train.machine.hardware import Gpu, Processor
from hpc_train.plans.node_topology import (
    DISTANCES,
    NVLINK,
    XGMI,
    GpuLink,
    GpuPlace,
    Nic,
    NodeTopology,
    NumaNode,
    cpu_numbers,
)

_CPUS = re.compile(r"[0-9]{1,6}[-,0-9]*")
_PCI_BUS = re.compile(r"\A([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\Z")


def processor(text: str) -> Processor | None:
    """Read the output of lscpu; None for any other text."""
    pairs = (line.partition(":") for line in text.splitlines())
    fields = {key.strip(): value.strip() for key, _, value in pairs}
    cpus = whole(fields.get("CPU(s)"))
    if cpus is None:
        return None
    return Processor(
        model=fields.get("Model name", ""),
        cpus=cpus,
        sockets=whole(fields.get("Socket(s)")),
        cores_per_socket=whole(fields.get("Core(s) per socket")),
        threads_per_core=whole(fields.get("Thread(s) per core")),
    )


def nvidia_gpus(text: str) -> tuple[Gpu, ...]:
    """Read `--query-gpu=index,name,memory.total,driver_version,pci.bus_id --format=csv,nounits`."""
    rows = list(csv.reader(text.split("\n"), skipinitialspace=True))
    heads = [head.partition(" ")[0] for head in rows[0]] if rows else []
    return tuple(
        Gpu(
            index=index,
            name=cells.get("name", ""),
            memory_mib=whole(cells.get("memory.total")),
            driver=cells.get("driver_version", ""),
            bus=_pci_address(cells.get("pci.bus_id", "")),
        )
        for cells in (dict(zip(heads, row, strict=False)) for row in rows[1:])
        if (index := whole(cells.get("index"))) is not None
    )


def _pci_address(text: str) -> str:
    """Return an address as /sys spells it: a domain of four digits, in lower case."""
    match = _PCI_BUS.match(text.strip().lower())
    return f"{match[1][-4:]}:{match[2]}" if match else ""


_CARD = re.compile(r"card([0-9]{1,3})")
_NAMES = ("card series", "card model", "device name", "market name", "gfx version")
_PAIR = re.compile(
    r"\(Topology\) (Weight|Link type|Hops) between DRM devices ([0-9]{1,3}) and ([0-9]{1,3})"
)
# The driver adds 15 for each hop over Infinity Fabric.
_HOP = 15
# The tool's hops over PCIe: 2 through one processor, 3 through the link between two.
_PCIE = {2: "NODE", 3: "SYS"}


class GpuPaths(NamedTuple):
    """What a tool of the GPUs says of their places and of the links between them."""

    places: tuple[GpuPlace, ...] = ()
    links: tuple[GpuLink, ...] = ()


def rocm_gpus(text: str) -> tuple[Gpu, ...]:
    """Read the JSON of `rocm-smi --showproductname --showbus`."""
    found = []
    for index, card in _cards(_rocm(text)):
        words = {key.lower(): str(value) for key, value in card.items()}
        name = next((words[key] for key in _NAMES if key in words), "")
        bus = _pci_address(words.get("pci bus", ""))
        found.append(Gpu(index=index, name=name, vendor="amd", bus=bus))
    return tuple(found)


def rocm_topology(text: str) -> GpuPaths:
    """Read the JSON of `rocm-smi --showtopo`, which lists neither cores nor network adapters."""
    document = _rocm(text)
    key = "(Topology) Numa Node"
    numa = {index: whole(str(card[key])) for index, card in _cards(document) if key in card}
    said: dict[tuple[int, int], dict[str, str]] = {}
    system = document.get("system")
    for name, value in system.items() if isinstance(system, dict) else ():
        if match := _PAIR.fullmatch(name):
            said.setdefault((int(match[2]), int(match[3])), {})[match[1]] = str(value)
    return GpuPaths(
        places=tuple(
            GpuPlace(gpu=gpu, numa=whole(str(node)))
            for gpu, node in numa.items()
            if node is not None
        ),
        links=tuple(link for pair, words in sorted(said.items()) for link in _link(pair, words)),
    )


def _link(pair: tuple[int, int], words: Mapping[str, str]) -> Iterator[GpuLink]:
    kind = words.get("Link type")
    if kind == XGMI:
        weight = whole(words.get("Weight")) or _HOP
        yield GpuLink(gpus=pair, kind=XGMI, count=max(1, round(weight / _HOP)))
    elif kind == "PCIE":
        yield GpuLink(gpus=pair, kind=_PCIE.get(whole(words.get("Hops")) or 0, "SYS"))


def _rocm(text: str) -> dict[str, Any]:
    """Return the JSON of rocm-smi, empty for text; lines with warnings may precede it."""
    line = next((one for one in text.splitlines() if one.startswith("{")), "")
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}


def _cards(document: Mapping[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    return sorted(
        (int(match[1]), card)
        for name, card in document.items()
        if (match := _CARD.fullmatch(name)) and isinstance(card, dict)
    )


_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_GPU_COLUMN = re.compile(r"GPU([0-9]{1,3})")
_LEGEND = re.compile(r"^\s*(NIC[0-9]+): (\S+)")
_BONDED = re.compile(r"NV([0-9]{1,3})")
_SELF = "X"
_UNCOUNTED = ("NVL", "C2C")


def nvidia_topology(text: str) -> GpuPaths:
    """Read the matrix, with or without NICs; lines that are cut off are left out."""
    lines = _ESCAPE.sub("", text).splitlines()
    legend = {match[1]: match[2] for line in lines if (match := _LEGEND.fullmatch(line))}
    heads, peers = list[str](), list[str]()
    places, links = [], []
    for line in lines:
        name, *row = _cells(line) or [""]
        if not heads and name == "GPU0" and _SELF not in row:
            heads = [name, *row]
            peers = [head for head in heads if "ffinity" not in head and "NUMA ID" not in head]
        elif heads and (match := _GPU_COLUMN.fullmatch(name)) and len(row) >= len(peers):
            levels = dict(zip(peers, row, strict=False))
            if all(map(_is_level, levels.values())):
                gpu, tail = int(match[1]), dict(zip(heads, row, strict=False))
                cores, nics = tail.get("CPU Affinity", ""), []
                for peer, level in levels.items():
                    other = _GPU_COLUMN.fullmatch(peer)
                    if other is None:
                        nics.append((legend.get(peer, peer), level))
                    # The matrix has each link twice.
                    elif int(other[1]) > gpu and level != _SELF:
                        links.append(_nvidia_link((gpu, int(other[1])), level))
                cpus = cores if _CPUS.fullmatch(cores) else ""
                numa = whole(tail.get("NUMA Affinity"))
                places.append(GpuPlace(gpu=gpu, numa=numa, cpus=cpus, nics=tuple(nics)))
    return GpuPaths(places=tuple(places), links=tuple(links))


def _nvidia_link(pair: tuple[int, int], level: str) -> GpuLink:
    if bonded := _BONDED.fullmatch(level):
        return GpuLink(gpus=pair, kind=NVLINK, count=int(bonded[1]))
    return GpuLink(gpus=pair, kind=level)


def _cells(line: str) -> list[str]:
    """Split at tabs, or at two blanks or more, as in a table that was copied."""
    return [cell.strip() for cell in re.split(r"\t+| {2,}", line.strip()) if cell.strip()]


def _is_level(cell: str) -> bool:
    return cell in (_SELF, *_UNCOUNTED, *DISTANCES) or _BONDED.fullmatch(cell) is not None


def read_topology(host: str, gpus: Sequence[Gpu], found: Mapping[str, str]) -> NodeTopology:
    """Return what the tools say; what they do not say is taken from /sys.

    `found` are the texts of the sections.
    """
    numa = numa_nodes(found.get("numa", ""), found.get("sockets", ""))
    devices = pci_devices(found.get("pci", ""), found.get("pci_roots", ""), numa)
    if len(numa) == 1:
        # The firmware need not name the only node.
        devices = tuple(one._replace(numa=numa[0].number) for one in devices)
    amd = bool(gpus) and gpus[0].vendor == "amd"
    paths = rocm_topology(found["rocm"]) if amd else GpuPaths()
    if gpus and not amd:
        paths = nvidia_topology(found.get("nvidia_topology", ""))
    places = {place.gpu: place for place in paths.places}
    rdma = [one for one in devices if one.kind == "infiniband"]
    adapters = rdma or [one for one in devices if one.kind == "net"]
    nics = {one.name: one.numa for one in adapters}
    named = dict.fromkeys(name for place in paths.places for name, _ in place.nics)
    return NodeTopology(
        host=host,
        gpu_model=", ".join(dict.fromkeys(gpu.name for gpu in gpus)),
        numa=numa,
        gpus=tuple(_place(places.get(gpu.index), gpu, devices, adapters) for gpu in gpus),
        nics=tuple(Nic(name=printable(name), numa=nics.get(name)) for name in named or nics),
        links=paths.links,
    )


def _place(
    said: GpuPlace | None, gpu: Gpu, devices: Sequence[PciDevice], adapters: Sequence[PciDevice]
) -> GpuPlace:
    place = said or GpuPlace(gpu=gpu.index)
    own = next((one for one in devices if one.kind == "gpu" and one.name == gpu.bus), None)
    if own is None:
        return place
    nics = place.nics or tuple((nic.name, distance(own, nic)) for nic in adapters)
    numa = own.numa if place.numa is None else place.numa
    return msgspec.structs.replace(place, nics=nics, numa=numa)


_DEVICES = "/sys/devices/"
_NODE = re.compile(r"\A/sys/devices/system/node/node([0-9]{1,6})/cpulist:([-,0-9]{0,4000})\Z")
_ROOT_BUS = re.compile(
    r"\A/sys/devices/(pci[0-9a-f:]{1,16})/pci_bus/[^/]{1,16}/cpulistaffinity:([-,0-9]{0,4000})\Z"
)


class PciDevice(NamedTuple):
    """A device: its class in /sys (`infiniband`, `net`, `gpu`), its folders from the root on."""

    kind: str
    name: str
    numa: int | None
    path: tuple[str, ...]


def numa_nodes(cpus: str, sockets: str = "") -> tuple[NumaNode, ...]:
    """Read lines `.../nodeNUMBER/cpulist:CPUS`, and `NUMBER,SOCKET` of `lscpu -p`."""
    pairs = (line.partition(",") for line in sockets.splitlines())
    socket = {whole(node): whole(own) for node, _, own in pairs}
    found = (_NODE.search(line) for line in cpus.splitlines())
    nodes = {int(match[1]): match[2] for match in found if match}
    return tuple(
        NumaNode(number=number, cpus=own, socket=socket.get(number))
        for number, own in sorted(nodes.items())
    )


def pci_devices(paths: str, roots: str, numa: Sequence[NumaNode]) -> tuple[PciDevice, ...]:
    """Read the folders of adapters, and the class files of GPUs; what is not on PCI is left out.

    `roots` are lines `/sys/devices/ROOT/pci_bus/.../cpulistaffinity:CPUS`: the nearest cores.
    """
    near = {match[1]: match[2] for line in roots.splitlines() if (match := _ROOT_BUS.search(line))}
    found = []
    for line in paths.splitlines():
        *folders, kind, name = line.strip().removeprefix(_DEVICES).split("/")
        parts = tuple(part for part in (*folders, kind) if _is_pci(part))
        gpu = name == "class" and _is_pci(kind)
        if line.startswith(_DEVICES) and parts and (gpu or kind in ("infiniband", "net")):
            kind, name = ("gpu", kind) if gpu else (kind, name)
            node = _node_of(near.get(parts[0], ""), numa)
            found.append(PciDevice(kind=kind, name=name, numa=node, path=parts))
    return tuple(found)


def _node_of(cpus: str, numa: Sequence[NumaNode]) -> int | None:
    """Return the NUMA node with these cores; the kernel lists all if the firmware names none."""
    wanted = set(cpu_numbers(cpus))
    nodes = (one.number for one in numa if wanted and wanted <= set(cpu_numbers(one.cpus)))
    return next(nodes, None)


def distance(first: PciDevice, second: PciDevice) -> str:
    """Return the path between two devices as a key of `DISTANCES`, by the rule of NCCL.

    The rule compares their folders (nccl v2.4.8, `pciPathDistance`): another root is NODE or SYS,
    the same root PHB, the same switch PIX, a switch above PXB.
    """
    same = [one == other for one, other in zip(first.path, second.path, strict=False)]
    common = [*same, False].index(False)
    if common == 0:
        return "NODE" if first.numa is not None and first.numa == second.numa else "SYS"
    if common == 1:
        return "PHB"
    return "PIX" if common >= max(len(first.path), len(second.path)) - 2 else "PXB"


def _is_pci(part: str) -> bool:
    """Whether a folder is a root or a PCI address, not what a driver adds (`virtio2`)."""
    return part.startswith("pci") or part.count(":") == 2
