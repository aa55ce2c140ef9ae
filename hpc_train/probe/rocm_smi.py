"""`rocm-smi` -> GPUs (on MI250X each half is one), and the NUMA node of each."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from hpc_train.model.hardware import Gpu, Near
from hpc_train.probe.parse_numbers import whole

_CARD = re.compile(r"card([0-9]{1,3})")
_NAMES = ("card series", "card model", "device name", "market name", "gfx version")
_TEXT_NAME = re.compile(r"GPU\[([0-9]{1,3})\]\s*:\s*Card [Ss]eries:\s*(.+)")
_TEXT_NUMA = re.compile(r"GPU\[([0-9]{1,3})\]\s*:\s*\(Topology\) Numa Node:\s*(\d+)")


def gpus(text: str) -> tuple[Gpu, ...]:
    """Read `--showproductname`, as JSON or as text."""
    named = {
        index: next((str(card[key]) for name in _NAMES for key in card if key.lower() == name), "")
        for index, card in _cards(text).items()
    }
    named = named or {int(m[1]): m[2].strip() for m in _TEXT_NAME.finditer(text)}
    return tuple(Gpu(index=index, name=name, vendor="amd") for index, name in sorted(named.items()))


def near(text: str) -> tuple[Near, ...]:
    """Read `--showtopo`, as JSON or as text; it knows no cores."""
    key = "(Topology) Numa Node"
    nodes = {i: str(card[key]) for i, card in _cards(text).items() if key in card}
    nodes = nodes or {int(m[1]): m[2] for m in _TEXT_NUMA.finditer(text)}
    return tuple(
        Near(gpu=index, numa=whole(node), first_cpu=None) for index, node in sorted(nodes.items())
    )


def _cards(text: str) -> dict[int, dict[str, Any]]:
    """Warnings may stand before the JSON, on a line of their own."""
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
