"""The sections of the probe script on processor, GPUs and NUMA nodes -> NodeTopology."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from hpc_train.base.processes import printable, whole
from hpc_train.machine.hardware import Gpu, Processor
from hpc_train.plans.binding import (
    DISTANCES,
    NVLINK,
    XGMI,
    GpuLink,
    GpuPlace,
    Nic,
    NodeTopology,
    NumaNode,
)

_CPUS = re.compile(r"[0-9]{1,6}[-,0-9]*")


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
    """Read `--query-gpu=index,name,memory.total,driver_version --format=csv,nounits`."""
    rows = list(csv.reader(text.split("\n"), skipinitialspace=True))
    heads = [head.partition(" ")[0] for head in rows[0]] if rows else []
    return tuple(
        Gpu(
            index=index,
            name=cells.get("name", ""),
            memory_mib=whole(cells.get("memory.total")),
            driver=cells.get("driver_version", ""),
        )
        for cells in (dict(zip(heads, row, strict=False)) for row in rows[1:])
        if (index := whole(cells.get("index"))) is not None
    )


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
    """Read the JSON of `rocm-smi --showproductname`."""
    found = []
    for index, card in _cards(_rocm(text)):
        words = {key.lower(): str(value) for key, value in card.items()}
        name = next((words[key] for key in _NAMES if key in words), "")
        found.append(Gpu(index=index, name=name, vendor="amd"))
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
                        bonded = _BONDED.fullmatch(level)
                        kind, count = (NVLINK, int(bonded[1])) if bonded else (level, 1)
                        links.append(GpuLink(gpus=(gpu, int(other[1])), kind=kind, count=count))
                cpus = cores if _CPUS.fullmatch(cores) else ""
                numa = whole(tail.get("NUMA Affinity"))
                places.append(GpuPlace(gpu=gpu, numa=numa, cpus=cpus, nics=tuple(nics)))
    return GpuPaths(places=tuple(places), links=tuple(links))


def _cells(line: str) -> list[str]:
    """Split at tabs, or at two blanks or more, as in a table that was copied."""
    return [cell.strip() for cell in re.split(r"\t+| {2,}", line.strip()) if cell.strip()]


def _is_level(cell: str) -> bool:
    return cell in (_SELF, *_UNCOUNTED, *DISTANCES) or _BONDED.fullmatch(cell) is not None


def read_topology(host: str, gpus: Sequence[Gpu], found: Mapping[str, str]) -> NodeTopology:
    """Return what the tools say of GPUs, and /sys of NUMA nodes and adapters.

    `found` are the texts of the sections.
    """
    numa = numa_nodes(found.get("numa", ""), found.get("sockets", ""))
    amd = bool(gpus) and gpus[0].vendor == "amd"
    paths = rocm_topology(found["rocm"]) if amd else GpuPaths()
    if gpus and not amd:
        paths = nvidia_topology(found.get("nvidia_topology", ""))
    places = {place.gpu: place for place in paths.places}
    nics = _nics(found.get("nics", ""), numa)
    named = dict.fromkeys(name for place in paths.places for name, _ in place.nics)
    return NodeTopology(
        host=host,
        gpu_model=", ".join(dict.fromkeys(gpu.name for gpu in gpus)),
        numa=numa,
        gpus=tuple(places.get(gpu.index, GpuPlace(gpu=gpu.index)) for gpu in gpus),
        nics=tuple(Nic(name=printable(name), numa=nics.get(name)) for name in named or nics),
        links=paths.links,
    )


_NODE = re.compile(r"\A/sys/devices/system/node/node([0-9]{1,6})/cpulist:([-,0-9]{0,4000})\Z")
_NIC = re.compile(r"\A/sys/class/(infiniband|net)/([^/]{1,64})/device/numa_node:(-?[0-9]{1,6})\Z")


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


def _nics(text: str, numa: Sequence[NumaNode]) -> dict[str, int | None]:
    """Return the NUMA node of each RDMA adapter or, if there is none, of each network interface.

    The firmware need not name it: -1, which is the only node of a machine that has one.
    """
    found = [match for line in text.splitlines() if (match := _NIC.match(line))]
    rdma = [match for match in found if match[1] == "infiniband"]
    only = numa[0].number if len(numa) == 1 else None
    return {match[2]: only if match[3] == "-1" else int(match[3]) for match in rdma or found}
