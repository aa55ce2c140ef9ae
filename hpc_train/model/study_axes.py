"""Axes of a study: which of them make a point bigger, and which make another series."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SIZE_AXES = frozenset({"nodes", "gpus_per_node", "tasks_per_node"})
ALONE = "all"


def axis_name(key: str) -> str:
    """Return the short name of an axis: `nodes` for `resources.nodes`."""
    return key.removeprefix("resources.")


def series_label(axes: Mapping[str, Any]) -> str:
    """Return `launcher=srun, env.X=1` from the axes that are not sizes; `all` without any."""
    parts = [f"{axis_name(k)}={v}" for k, v in axes.items() if axis_name(k) not in SIZE_AXES]
    return ", ".join(parts) or ALONE


def size_of(axes: Mapping[str, Any], name: str) -> int | None:
    """Return the value of a size axis, None where the study does not vary it."""
    value = next((v for k, v in axes.items() if axis_name(k) == name), None)
    return value if isinstance(value, int) else None


def narrowed(label: str, name: str, value: str) -> str:
    """Return the label of the part of a series in which something has one value."""
    return f"{name}={value}" if label == ALONE else f"{label}, {name}={value}"
