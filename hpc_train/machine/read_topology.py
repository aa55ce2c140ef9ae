"""The sections of the probe script on processor, GPUs and NUMA nodes -> NodeTopology."""

import csv
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hpc_train.base.processes import whole
from hpc_train.machine.hardware import Gpu, Processor
from hpc_train.plans.binding import DISTANCES, GpuPlace, NodeTopology, NumaNode

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


def rocm_gpus(text: str) -> tuple[Gpu, ...]:
    """Read the JSON of `rocm-smi --showproductname`."""
    found = []
    for index, card in _cards(_rocm(text)):
        words = {key.lower(): str(value) for key, value in card.items()}
        name = next((words[key] for key in _NAMES if key in words), "")
        found.append(Gpu(index=index, name=name, vendor="amd"))
    return tuple(found)


def rocm_topology(text: str) -> tuple[GpuPlace, ...]:
    """Read the JSON of `rocm-smi --showtopo`, which lists neither cores nor network adapters."""
    key = "(Topology) Numa Node"
    cards = ((gpu, whole(str(card.get(key)))) for gpu, card in _cards(_rocm(text)))
    return tuple(GpuPlace(gpu=gpu, numa=numa) for gpu, numa in cards if numa is not None)


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


def nvidia_topology(text: str) -> tuple[GpuPlace, ...]:
    """Read the matrix, with or without NICs; lines that are cut off are left out."""
    lines = _ESCAPE.sub("", text).splitlines()
    legend = {match[1]: match[2] for line in lines if (match := _LEGEND.fullmatch(line))}
    heads, peers = list[str](), list[str]()
    places = []
    for line in lines:
        name, *row = _cells(line) or [""]
        if not heads and name == "GPU0" and _SELF not in row:
            heads = [name, *row]
            peers = [head for head in heads if "ffinity" not in head and "NUMA ID" not in head]
        elif heads and (match := _GPU_COLUMN.fullmatch(name)) and len(row) >= len(peers):
            levels = dict(zip(peers, row, strict=False))
            if all(map(_is_level, levels.values())):
                tail = dict(zip(heads, row, strict=False))
                cores = tail.get("CPU Affinity", "")
                nics = tuple(
                    (legend.get(peer, peer), level)
                    for peer, level in levels.items()
                    if not _GPU_COLUMN.fullmatch(peer)
                )
                cpus = cores if _CPUS.fullmatch(cores) else ""
                numa = whole(tail.get("NUMA Affinity"))
                places.append(GpuPlace(gpu=int(match[1]), numa=numa, cpus=cpus, nics=nics))
    return tuple(places)


def _cells(line: str) -> list[str]:
    """Split at tabs, or at two blanks or more, as in a table that was copied."""
    return [cell.strip() for cell in re.split(r"\t+| {2,}", line.strip()) if cell.strip()]


def _is_level(cell: str) -> bool:
    return cell in (_SELF, *_UNCOUNTED, *DISTANCES) or _BONDED.fullmatch(cell) is not None


def read_topology(gpus: Sequence[Gpu], found: Mapping[str, str]) -> NodeTopology:
    """Return what the tools say of GPUs, and /sys of NUMA nodes; `found` are texts by section."""
    amd = bool(gpus) and gpus[0].vendor == "amd"
    read, section = (rocm_topology, "rocm") if amd else (nvidia_topology, "nvidia_topology")
    places = {place.gpu: place for place in read(found.get(section, ""))}
    return NodeTopology(
        numa=numa_nodes(found.get("numa", "")),
        gpus=tuple(places.get(gpu.index, GpuPlace(gpu=gpu.index)) for gpu in gpus),
    )


_NODE = re.compile(r"\A/sys/devices/system/node/node([0-9]{1,6})/cpulist:([-,0-9]{0,4000})\Z")


def numa_nodes(cpus: str) -> tuple[NumaNode, ...]:
    """Read lines `.../nodeNUMBER/cpulist:CPUS`."""
    found = (_NODE.search(line) for line in cpus.splitlines())
    nodes = {int(match[1]): match[2] for match in found if match}
    return tuple(NumaNode(number=number, cpus=own) for number, own in sorted(nodes.items()))
