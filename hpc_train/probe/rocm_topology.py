"""`rocm-smi --showtopo` -> places of the GPUs, and the links between them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.model.node_topology import XGMI, GpuLink, GpuPlace
from hpc_train.probe.gpu_tools import cards, json_document
from hpc_train.probe.nvidia_topology import GpuPaths
from hpc_train.probe.run_program import whole

_NUMA = re.compile(r"GPU\[([0-9]{1,3})\]\s*:\s*\(Topology\) Numa Node:\s*(\d+)")
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
    nodes = nodes or {int(m[1]): m[2] for m in _NUMA.finditer(text)}
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
