"""The name of a GPU -> the most memory that it can have."""

from __future__ import annotations

import re

# GiB of the largest variant, from the vendors' data sheets; an MI250X may count as one GPU or two.
_GIB = {
    "P100": 16, "V100": 32, "T4": 16, "A10": 24, "A10G": 24, "A30": 24, "A40": 48, "A100": 80,
    "L4": 24, "L40": 48, "L40S": 48, "H100": 96, "GH200": 144, "H200": 141, "B200": 192,
    "GB200": 192, "B300": 288, "GB300": 288, "MI100": 32, "MI210": 64, "MI250": 128,
    "MI250X": 128, "MI300A": 128, "MI300X": 192, "MI325X": 256, "MI350X": 288, "MI355X": 288,
}  # fmt: skip
_WORD = re.compile(r"[A-Z]{1,3}[0-9]{1,3}[A-Z]?(?![A-Z0-9])")
_SIZE = re.compile(r"\b([0-9]{1,3}) ?GI?B?\b")


def most_gib(name: str) -> float | None:
    """Return the most memory [GiB] of a GPU with this name (`NVIDIA A100-SXM4-40GB`, `a100`).

    None if neither the model nor a size in the name is known. The size in a name counts as GiB; it
    is not used if it exceeds that of the model (GH200 480GB: the memory of the CPU).
    """
    text = name.upper().replace("_", " ")
    known = [_GIB[word] for word in _WORD.findall(text) if word in _GIB]
    sizes = [int(size) for size in _SIZE.findall(text)]
    every = [*known, *sizes]
    return float(min(every)) if every else None
