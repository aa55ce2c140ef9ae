"""`nvidia-smi` and `rocm-smi` -> GPUs: names, memory, drivers, PCI addresses."""

from __future__ import annotations

import csv
import re
from typing import Any

import msgspec

from hpc_train.base.processes import whole
from hpc_train.machine.hardware import Gpu

_CARD = re.compile(r"card([0-9]{1,3})")
_NAMES = ("card series", "card model", "device name", "market name", "gfx version")
_BUS = re.compile(r"\A([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\Z")
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
    match = _BUS.match(text.strip().lower())
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
