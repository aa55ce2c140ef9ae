"""`nvidia-smi topo -m` -> places of the GPUs, and the links between them."""

from __future__ import annotations

import re

from hpc_train.base.processes import whole
from hpc_train.base.value import Value
from hpc_train.plans.node_topology import DISTANCES, NVLINK, GpuLink, GpuPlace

_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_GPU = re.compile(r"GPU([0-9]{1,3})")
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
        match = _GPU.fullmatch(name)
        if match and len(row) >= len(peers) and all(map(_is_level, row[: len(peers)])):
            gpu, levels = int(match[1]), dict(zip(peers, row, strict=False))
            tail = dict(zip(heads[len(peers) :], row[len(peers) :], strict=False))
            places.append(_place(gpu, levels, legend, tail))
            links += _links(gpu, levels)
    return GpuPaths(places=tuple(places), links=tuple(links))


def _place(
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
            if not _GPU.fullmatch(name)
        ),
    )


def _links(gpu: int, levels: dict[str, str]) -> list[GpuLink]:
    """Return the links to GPUs of higher numbers; the matrix has each twice."""
    found = []
    for name, level in levels.items():
        other = _GPU.fullmatch(name)
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
