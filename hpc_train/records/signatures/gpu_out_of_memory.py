"""Out of memory on a GPU: the sizes that PyTorch states, and which of three causes they show."""

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
    """Return the bytes of `1.5 GiB`; 0 where it is no size."""
    number, _, unit = text.partition(" ")
    try:
        return float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        return 0.0


def _others(groups: Mapping[str, str], own: float, taken: float) -> float:
    """Return what other processes hold of the `taken` bytes; this one has `own` at least."""
    sizes = [size(text) for text in _ONE.findall(groups.get("others", ""))]
    # In a container, PyTorch cannot tell which of the processes it is itself.
    if "used" not in groups and sum(sizes) + own > _ROUNDING * taken:
        sizes.sort()
        itself = next((held for held in sizes if held * _ROUNDING >= own), 0.0)
        return sum(sizes) - itself
    return sum(sizes)


def kind_of(groups: Mapping[str, str]) -> Memory | None:
    """Return why memory was short, by the groups of `cuda_oom`; None if unknown."""
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
