"""The interface that carried the traffic, from the kernel's counters before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

# Of this process's network namespace, which may differ from that of /sys.
INTERFACES = Path("/proc/net/dev")
ADAPTERS = Path("/sys/class/infiniband")
# Less than this is background traffic.
NOISE = 1_000_000
# InfiniBand counts words of four bytes.
_WORD = 4
_SENT = 8


def sent_bytes() -> dict[str, int]:
    """Return the bytes sent so far, by interface and by InfiniBand adapter."""
    counters = dict(_interfaces(INTERFACES.read_text(encoding="ascii", errors="replace")))
    for path in ADAPTERS.glob("*/ports/*/counters/port_xmit_data"):
        adapter = path.parts[len(ADAPTERS.parts)]
        counters[adapter] = counters.get(adapter, 0) + _WORD * _number(path)
    return counters


def _interfaces(table: str) -> Iterator[tuple[str, int]]:
    """Yield names and bytes sent: the ninth number behind the name."""
    for line in table.splitlines():
        name, colon, numbers = line.partition(":")
        words = numbers.split()
        if colon and len(words) > _SENT and words[_SENT].isdigit():
            yield name.strip(), int(words[_SENT])


def busiest(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Return the interface that sent most of the bytes, or an empty text below the threshold."""
    grown = {name: count - before.get(name, 0) for name, count in after.items()}
    name = max(grown, key=lambda one: grown[one], default="")
    return name if name and grown[name] > NOISE else ""


def _number(path: Path) -> int:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0
