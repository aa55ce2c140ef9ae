"""Out of memory on a GPU: the sizes that PyTorch prints, and the one of three causes they show."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hpc_train.records.signatures.base import Memory

_SIZE = r"[\d.]{1,16} (?:[KMGTPE]i?B|bytes|B)\b"
_ONE = re.compile(_SIZE)
_UNITS = {"bytes": 1, "B": 1} | {
    f"{letter}{ending}": float(base**power)
    for power, letter in enumerate("KMGTPE", 1)
    for ending, base in (("iB", 1024), ("B", 1000))
}
# A smaller fraction of the GPU's memory is not the cause.
_SMALL = 0.05
_ROUNDING = 1.02


def size(text: str) -> float:
    """Return the bytes of `1.5 GiB`; 0 if the text is not a size."""
    number, _, unit = text.partition(" ")
    try:
        return float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        return 0.0


def _others(groups: Mapping[str, str], own: float, taken: float) -> float:
    """Return how many of the `taken` bytes other processes hold; this one holds at least `own`."""
    sizes = [size(text) for text in _ONE.findall(groups.get("others", ""))]
    # In a container, PyTorch cannot determine which of the processes is its own.
    if "used" not in groups and sum(sizes) + own > _ROUNDING * taken:
        sizes.sort()
        itself = next((held for held in sizes if held * _ROUNDING >= own), 0.0)
        return sum(sizes) - itself
    return sum(sizes)


def kind_of(groups: Mapping[str, str]) -> Memory | None:
    """Return the cause of the memory shortage, from the groups of `cuda_oom`; None if unknown."""
    tried, total, free, allocated, unused, reserved = (
        size(groups.get(name, ""))
        for name in ("tried", "total", "free", "allocated", "unused", "reserved")
    )
    if not total or not allocated:
        return None
    unused = unused or max(reserved - allocated, 0.0)
    others = _others(groups, allocated + unused, total - free)
    if others >= _SMALL * total and others + free >= tried and others > unused:
        return "other_processes"
    if unused >= _SMALL * total and unused + free >= tried:
        return "fragmentation"
    return "full"
