"""Points -> the unit of their size, in summary, tables, axes and laws: GPUs, ranks or nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class SizeUnit(NamedTuple):
    """The key of a size in a row of points, and its name: `gpus`, `GPU`."""

    key: str
    name: str

    @property
    def plural(self) -> str:
        """The name on an axis and in a heading."""
        return f"{self.name}s"


# In the order in which `ideal` is computed from them.
UNITS = (SizeUnit("gpus", "GPU"), SizeUnit("ranks", "rank"), SizeUnit("nodes", "node"))
RANKS = UNITS[1]


def size_unit(points: Sequence[Mapping[str, Any]]) -> SizeUnit:
    """Return GPUs if each point with a size has them, else ranks, else nodes."""
    for unit in UNITS:
        lacking = [row for row in points if not row.get(unit.key)]
        sized = (row.get(other.key) for row in lacking for other in UNITS)
        if len(lacking) < len(points) and not any(sized):
            return unit
    return RANKS


def baseline_size(points: Sequence[Mapping[str, Any]], series: str, unit: SizeUnit) -> float | None:
    """Return the size to which a series is compared, q = 1; None if it is unknown."""
    for row in points:
        if row["series"] == series and row.get("ideal") and row.get(unit.key):
            return float(row[unit.key]) / float(row["ideal"])
    return None
