"""`nvidia-smi` and `rocm-smi` -> GPUs, and their distances to cores, NUMA nodes and NICs."""

from __future__ import annotations

import csv
import re
from typing import Any

import msgspec

from hpc_train.model.hardware import Gpu, Near
from hpc_train.probe.run_program import whole

LEVELS = ("X", "PIX", "PXB", "PHB", "NODE", "SYS")
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_GPU = re.compile(r"GPU([0-9]{1,3})")
_LEGEND = re.compile(r"^\s*(NIC[0-9]+): (\S+)")
_CORES = re.compile(r"([0-9]{1,6})[-,0-9]*")
_CARD = re.compile(r"card([0-9]{1,3})")
_NAMES = ("card series", "card model", "device name", "market name", "gfx version")
_TEXT_NAME = re.compile(r"GPU\[([0-9]{1,3})\]\s*:\s*Card [Ss]eries:\s*(.+)")
_TEXT_NUMA = re.compile(r"GPU\[([0-9]{1,3})\]\s*:\s*\(Topology\) Numa Node:\s*(\d+)")


def nvidia_gpus(text: str) -> tuple[Gpu, ...]:
    """Read `--query-gpu=index,name,memory.total,driver_version --format=csv,nounits`."""
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
                )
            )
    return tuple(found)


def nvidia_topology(text: str) -> tuple[Near, ...]:
    """Read the matrix of `nvidia-smi topo -m`, with or without NICs."""
    lines = _ESCAPE.sub("", text).splitlines()
    start = next((i for i, line in enumerate(lines) if _is_head(line)), None)
    if start is None:
        return ()
    legend = {match[1]: match[2] for line in lines if (match := _LEGEND.fullmatch(line))}
    heads = _cells(lines[start])
    peers = [head for head in heads if "ffinity" not in head and "NUMA ID" not in head]
    tail = heads[len(peers) :]
    found = []
    for line in lines[start + 1 :]:
        name, *row = _cells(line) or [""]
        match = _GPU.fullmatch(name)
        if match and len(row) >= len(peers) and all(_is_level(c) for c in row[: len(peers)]):
            distances = dict(zip(peers, row, strict=False))
            nics = [(legend.get(n, n), d) for n, d in distances.items() if not _GPU.fullmatch(n)]
            found.append(
                _near(int(match[1]), tuple(nics), dict(zip(tail, row[len(peers) :], strict=False)))
            )
    return tuple(found)


def _near(gpu: int, nics: tuple[tuple[str, str], ...], tail: dict[str, str]) -> Near:
    cores = _CORES.fullmatch(tail.get("CPU Affinity", ""))
    return Near(
        gpu=gpu,
        numa=whole(tail.get("NUMA Affinity")),
        first_cpu=int(cores[1]) if cores else None,
        nics=nics,
    )


def _cells(line: str) -> list[str]:
    """Split at tabs, or at two blanks or more, as in a table that was copied."""
    return [cell.strip() for cell in re.split(r"\t+| {2,}", line.strip()) if cell.strip()]


def _is_head(line: str) -> bool:
    cells = _cells(line)
    return bool(cells) and cells[0] == "GPU0" and "X" not in cells


def _is_level(cell: str) -> bool:
    return cell in LEVELS or re.fullmatch(r"NV\d+|NVL|C2C", cell) is not None


def rocm_gpus(text: str) -> tuple[Gpu, ...]:
    """Read `--showproductname`, as JSON or as text."""
    named = {
        index: next((str(card[key]) for name in _NAMES for key in card if key.lower() == name), "")
        for index, card in _cards(text).items()
    }
    named = named or {int(m[1]): m[2].strip() for m in _TEXT_NAME.finditer(text)}
    return tuple(Gpu(index=index, name=name, vendor="amd") for index, name in sorted(named.items()))


def rocm_topology(text: str) -> tuple[Near, ...]:
    """Read `--showtopo`, as JSON or as text; it does not list cores."""
    key = "(Topology) Numa Node"
    nodes = {i: str(card[key]) for i, card in _cards(text).items() if key in card}
    nodes = nodes or {int(m[1]): m[2] for m in _TEXT_NUMA.finditer(text)}
    return tuple(
        Near(gpu=index, numa=whole(node), first_cpu=None) for index, node in sorted(nodes.items())
    )


def _cards(text: str) -> dict[int, dict[str, Any]]:
    """Return the cards by index; lines with warnings may precede the JSON."""
    line = next((one for one in text.splitlines() if one.startswith("{")), "")
    try:
        document: Any = msgspec.json.decode(line.encode())
    except msgspec.DecodeError:
        return {}
    return {
        int(match[1]): card
        for name, card in document.items()
        if (match := _CARD.fullmatch(name)) and isinstance(card, dict)
    }
