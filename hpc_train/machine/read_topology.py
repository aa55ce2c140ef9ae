"""The sections of the probe script on processor, GPUs, NUMA nodes and PCI -> NodeTopology."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from hpc_train.base.processes import printable, whole
from hpc_train.base.value import Value
from hpc_train.machine.hardware import Gpu, Processor
from hpc_train.machine.probe_script import Section
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

_NUMA = re.compile(r"NUMA node([0-9]{1,6}) CPU\(s\)")
_FIRST = re.compile("[0-9]{1,6}")


def processor(text: str) -> Processor | None:
    """Read the output of lscpu; None for any other text."""
    fields = lscpu_fields(text)
    cpus = whole(fields.get("CPU(s)"))
    if cpus is None:
        return None
    numa = [
        (int(match[1]), int(first[0]))
        for key, value in fields.items()
        if (match := _NUMA.fullmatch(key)) and (first := _FIRST.match(value))
    ]
    return Processor(
        model=fields.get("Model name", ""),
        cpus=cpus,
        sockets=whole(fields.get("Socket(s)")),
        cores_per_socket=whole(fields.get("Core(s) per socket")),
        threads_per_core=whole(fields.get("Thread(s) per core")),
        numa=tuple(sorted(numa)),
    )


def lscpu_fields(text: str) -> dict[str, str]:
    """Return the fields of lscpu, from JSON or text; empty for any other text."""
    return dict(_json_fields(text)) or dict(_text_fields(text))


def _json_fields(text: str) -> Iterator[tuple[str, str]]:
    try:
        document: Any = msgspec.json.decode(text.encode())
    except msgspec.DecodeError:
        return
    if isinstance(document, dict):
        yield from _walk(document.get("lscpu"))


def _walk(items: Any) -> Iterator[tuple[str, str]]:
    """Yield all fields; util-linux 2.38 and later nest some of them."""
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict):
            yield str(item.get("field", "")).rstrip(":"), str(item.get("data") or "")
            yield from _walk(item.get("children"))


def _text_fields(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            yield key.strip(), value.strip()


_CARD = re.compile(r"card([0-9]{1,3})")
_NAMES = ("card series", "card model", "device name", "market name", "gfx version")
_PCI_BUS = re.compile(r"\A([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\Z")
_TEXT_BUS = re.compile(r"GPU\[([0-9]{1,3})\]\s*:\s*PCI Bus:\s*(\S{1,20})")
_TEXT_NAME = re.compile(r"GPU\[([0-9]{1,3})\]\s*:\s*Card [Ss]eries:\s*(.+)")


def nvidia_gpus(text: str) -> tuple[Gpu, ...]:
    """Read `--query-gpu=index,name,memory.total,driver_version,pci.bus_id --format=csv,nounits`."""
    heads, *rows = list(csv.reader(text.split("\n"), skipinitialspace=True)) or [[]]
    names = [head.partition(" ")[0] for head in heads]
    found = []
    for row in rows:
        cells = dict(zip(names, row, strict=False))
        index = whole(cells.get("index"))
        if index is not None:
            found.append(
                Gpu(
                    index=index,
                    name=cells.get("name", ""),
                    memory_mib=whole(cells.get("memory.total")),
                    driver=cells.get("driver_version", ""),
                    bus=pci_address(cells.get("pci.bus_id", "")),
                )
            )
    return tuple(found)


def rocm_gpus(text: str, buses: str = "") -> tuple[Gpu, ...]:
    """Read `--showproductname`, as JSON or as text, and `--showbus`, as text."""
    named = {
        index: next((str(card[key]) for name in _NAMES for key in card if key.lower() == name), "")
        for index, card in cards(text).items()
    }
    named = named or {int(m[1]): m[2].strip() for m in _TEXT_NAME.finditer(text)}
    bus = {int(match[1]): pci_address(match[2]) for match in _TEXT_BUS.finditer(buses)}
    return tuple(
        Gpu(index=index, name=name, vendor="amd", bus=bus.get(index, ""))
        for index, name in sorted(named.items())
    )


def pci_address(text: str) -> str:
    """Return an address as /sys spells it: a domain of four digits, in lower case."""
    match = _PCI_BUS.match(text.strip().lower())
    return f"{match[1][-4:]}:{match[2]}" if match else ""


def cards(text: str) -> dict[int, dict[str, Any]]:
    """Return the cards of a JSON of rocm-smi by index."""
    return {
        int(match[1]): card
        for name, card in json_document(text).items()
        if (match := _CARD.fullmatch(name)) and isinstance(card, dict)
    }


def json_document(text: str) -> dict[str, Any]:
    """Return the JSON of rocm-smi, empty for text; lines with warnings may precede it."""
    line = next((one for one in text.splitlines() if one.startswith("{")), "")
    try:
        document: Any = msgspec.json.decode(line.encode())
    except msgspec.DecodeError:
        return {}
    return document if isinstance(document, dict) else {}


_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_GPU_COLUMN = re.compile(r"GPU([0-9]{1,3})")
_LEGEND = re.compile(r"^\s*(NIC[0-9]+): (\S+)")
_CORES = re.compile(r"[0-9]{1,6}[-,0-9]*")
_BONDED = re.compile(r"NV([0-9]{1,3})")
_SELF = "X"
_UNCOUNTED = ("NVL", "C2C")


class GpuPaths(Value, frozen=True, kw_only=True):
    """What a tool of the GPUs says of their places and of the links between them."""

    places: tuple[GpuPlace, ...] = ()
    links: tuple[GpuLink, ...] = ()


def nvidia_topology(text: str) -> GpuPaths:
    """Read the matrix, with or without NICs; lines that are cut off are left out."""
    lines = _ESCAPE.sub("", text).splitlines()
    start = next((i for i, line in enumerate(lines) if _is_head(line)), None)
    if start is None:
        return GpuPaths()
    legend = {match[1]: match[2] for line in lines if (match := _LEGEND.fullmatch(line))}
    heads = _cells(lines[start])
    peers = [head for head in heads if "ffinity" not in head and "NUMA ID" not in head]
    places, links = [], []
    for line in lines[start + 1 :]:
        name, *row = _cells(line) or [""]
        match = _GPU_COLUMN.fullmatch(name)
        if match and len(row) >= len(peers) and all(map(_is_level, row[: len(peers)])):
            gpu, levels = int(match[1]), dict(zip(peers, row, strict=False))
            tail = dict(zip(heads[len(peers) :], row[len(peers) :], strict=False))
            places.append(_place_of_row(gpu, levels, legend, tail))
            links += _links_of_row(gpu, levels)
    return GpuPaths(places=tuple(places), links=tuple(links))


def _place_of_row(
    gpu: int, levels: dict[str, str], legend: dict[str, str], tail: dict[str, str]
) -> GpuPlace:
    cores = tail.get("CPU Affinity", "")
    return GpuPlace(
        gpu=gpu,
        numa=whole(tail.get("NUMA Affinity")),
        cpus=cores if _CORES.fullmatch(cores) else "",
        nics=tuple(
            (legend.get(name, name), level)
            for name, level in levels.items()
            if not _GPU_COLUMN.fullmatch(name)
        ),
    )


def _links_of_row(gpu: int, levels: dict[str, str]) -> list[GpuLink]:
    """Return the links to GPUs of higher numbers; the matrix has each twice."""
    found = []
    for name, level in levels.items():
        other = _GPU_COLUMN.fullmatch(name)
        if other and int(other[1]) > gpu and level != _SELF:
            bonded = _BONDED.fullmatch(level)
            kind, count = (NVLINK, int(bonded[1])) if bonded else (level, 1)
            found.append(GpuLink(gpus=(gpu, int(other[1])), kind=kind, count=count))
    return found


def _cells(line: str) -> list[str]:
    """Split at tabs, or at two blanks or more, as in a table that was copied."""
    return [cell.strip() for cell in re.split(r"\t+| {2,}", line.strip()) if cell.strip()]


def _is_head(line: str) -> bool:
    cells = _cells(line)
    return bool(cells) and cells[0] == "GPU0" and _SELF not in cells


def _is_level(cell: str) -> bool:
    return cell in (_SELF, *_UNCOUNTED, *DISTANCES) or _BONDED.fullmatch(cell) is not None


_LSCPU_NUMA = re.compile(r"NUMA node([0-9]{1,6}) CPU\(s\)")
_CPUS = re.compile(r"[0-9]{1,6}[-,0-9]*")


def read_topology(host: str, gpus: Sequence[Gpu], found: Mapping[str, Section]) -> NodeTopology:
    """Return what the tools say; what they do not say is taken from /sys."""
    numa = numa_nodes(_text(found, "numa"), _text(found, "sockets"))
    numa = numa or _numa_of_lscpu(_text(found, "cpus"))
    devices = pci_devices(_text(found, "pci"), _text(found, "pci_roots"), numa)
    if len(numa) == 1:
        # The firmware need not name the only node.
        devices = tuple(msgspec.structs.replace(one, numa=numa[0].number) for one in devices)
    paths = _gpu_paths(gpus, found)
    places = {place.gpu: place for place in paths.places}
    adapters = _adapters(devices)
    return NodeTopology(
        host=host,
        gpu_model=", ".join(dict.fromkeys(gpu.name for gpu in gpus)),
        numa=numa,
        gpus=tuple(_place(places.get(gpu.index), gpu, devices, adapters) for gpu in gpus),
        nics=_nics(paths.places, adapters),
        links=paths.links,
    )


def _first(*nodes: int | None) -> int | None:
    return next((node for node in nodes if node is not None), None)


def _text(found: Mapping[str, Section], name: str) -> str:
    section = found.get(name)
    return section.text if section else ""


def _gpu_paths(gpus: Sequence[Gpu], found: Mapping[str, Section]) -> GpuPaths:
    if gpus and gpus[0].vendor == "amd":
        return rocm_topology(_text(found, "rocm_topology"))
    return nvidia_topology(_text(found, "nvidia_topology")) if gpus else GpuPaths()


def _adapters(devices: Sequence[PciDevice]) -> tuple[PciDevice, ...]:
    """Return the RDMA adapters; without any, the network interfaces."""
    rdma = tuple(one for one in devices if one.kind == "infiniband")
    return rdma or tuple(one for one in devices if one.kind == "net")


def _place(
    said: GpuPlace | None, gpu: Gpu, devices: Sequence[PciDevice], adapters: Sequence[PciDevice]
) -> GpuPlace:
    place = said or GpuPlace(gpu=gpu.index)
    own = next((one for one in devices if one.kind == "gpu" and one.name == gpu.bus), None)
    if own is None:
        return place
    nics = place.nics or tuple((nic.name, distance(own, nic)) for nic in adapters)
    return msgspec.structs.replace(place, nics=nics, numa=_first(place.numa, own.numa))


def _nics(places: Sequence[GpuPlace], adapters: Sequence[PciDevice]) -> tuple[Nic, ...]:
    named = dict.fromkeys(name for place in places for name, _ in place.nics)
    numa = {one.name: one.numa for one in adapters}
    return tuple(Nic(name=printable(name), numa=numa.get(name)) for name in named or numa)


def _numa_of_lscpu(text: str) -> tuple[NumaNode, ...]:
    return tuple(
        NumaNode(number=int(match[1]), cpus=value)
        for key, value in sorted(lscpu_fields(text).items())
        if (match := _LSCPU_NUMA.fullmatch(key)) and _CPUS.fullmatch(value)
    )


_ROCM_NUMA = re.compile(r"GPU\[([0-9]{1,3})\]\s*:\s*\(Topology\) Numa Node:\s*(\d+)")
_TITLE = re.compile(r"\A=+ ([A-Za-z][A-Za-z ]{1,60}) =+\Z")
_ROW = re.compile(r"\AGPU([0-9]{1,3})\Z")
_PAIR = re.compile(
    r"\A\(Topology\) (Weight|Link type|Hops) between DRM devices ([0-9]{1,3}) and ([0-9]{1,3})\Z"
)
# The driver adds 15 for each hop over Infinity Fabric.
_HOP = 15
# The tool's hops over PCIe: 2 through one processor, 3 through the link between two.
_PCIE = {2: "NODE", 3: "SYS"}
Pair = tuple[int, int]
Words = dict[str, dict[Pair, str]]


def rocm_topology(text: str) -> GpuPaths:
    """Read the text, or the JSON; neither lists cores or network adapters."""
    key = "(Topology) Numa Node"
    nodes = {i: str(card[key]) for i, card in cards(text).items() if key in card}
    nodes = nodes or {int(m[1]): m[2] for m in _ROCM_NUMA.finditer(text)}
    places = (GpuPlace(gpu=index, numa=whole(node)) for index, node in sorted(nodes.items()))
    return GpuPaths(places=tuple(places), links=tuple(_links(_pairs(text) or _matrices(text))))


def _links(words: Words) -> Iterator[GpuLink]:
    for pair, kind in sorted(words.get("link type", {}).items()):
        hops = whole(words.get("hops", {}).get(pair)) or 0
        weight = whole(words.get("weight", {}).get(pair)) or _HOP
        if kind == XGMI:
            yield GpuLink(gpus=pair, kind=XGMI, count=max(1, round(weight / _HOP)))
        elif kind == "PCIE":
            yield GpuLink(gpus=pair, kind=_PCIE.get(hops, "SYS"))


def _pairs(text: str) -> Words:
    """Return the values of the JSON by their kind."""
    found: Words = {}
    system = json_document(text).get("system")
    for key, value in system.items() if isinstance(system, dict) else ():
        if match := _PAIR.match(key):
            pair = (int(match[2]), int(match[3]))
            found.setdefault(match[1].lower(), {})[pair] = str(value)
    return found


def _matrices(text: str) -> Words:
    """Return the upper triangles of the matrices by their kind."""
    found: Words = {}
    kind = ""
    for line in text.splitlines():
        cells = line.split()
        if title := _TITLE.match(line.strip()):
            kind = title[1].partition(" between ")[0].lower()
        elif cells and (row := _ROW.match(cells[0])) and not _ROW.match(cells[-1]):
            for other, cell in enumerate(cells[1:]):
                if other > int(row[1]):
                    found.setdefault(kind, {})[int(row[1]), other] = cell
    return found


_DEVICES = "/sys/devices/"
_ROOT = "pci"
_NODE = re.compile(r"\A/sys/devices/system/node/node([0-9]{1,6})/cpulist:([-,0-9]{0,4000})\Z")
_ROOT_BUS = re.compile(
    r"\A/sys/devices/(pci[0-9a-f:]{1,16})/pci_bus/[^/]{1,16}/cpulistaffinity:([-,0-9]{0,4000})\Z"
)


class PciDevice(Value, frozen=True, kw_only=True):
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
    nodes = [
        NumaNode(number=int(match[1]), cpus=match[2], socket=socket.get(int(match[1])))
        for match in found
        if match
    ]
    return tuple(sorted(nodes, key=lambda one: one.number))


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
    nodes = [one.number for one in numa if wanted and wanted <= set(cpu_numbers(one.cpus))]
    return nodes[0] if nodes else None


def distance(first: PciDevice, second: PciDevice) -> str:
    """Return the path between two devices as a key of `DISTANCES`, by the rule of NCCL.

    The rule compares their folders (nccl v2.4.8, `pciPathDistance`): another root is NODE or SYS,
    the same root PHB, the same switch PIX, a switch above PXB.
    """
    common = 0
    for one, other in zip(first.path, second.path, strict=False):
        if one != other:
            break
        common += 1
    if common == 0:
        known = first.numa is not None and first.numa == second.numa
        return "NODE" if known else "SYS"
    if common == 1:
        return "PHB"
    return "PIX" if common >= max(len(first.path), len(second.path)) - 2 else "PXB"


def _is_pci(part: str) -> bool:
    """Whether a folder is a root or a PCI address, not what a driver adds (`virtio2`)."""
    return part.startswith(_ROOT) or part.count(":") == 2
