"""Tests that import torch, or start ranks that do: marked, and not even read where deselected."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

_TORCH = re.compile(r"""^(?:import|from) torch|importorskip\("torch"\)|forked_trainer""", re.M)


def _has_torch(path: Path) -> bool:
    return path.suffix == ".py" and bool(_TORCH.search(path.read_text(encoding="utf-8")))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what imports torch, for seconds, only to be deselected."""
    asked = config.option.markexpr
    if not asked or not collection_path.is_file() or not _has_torch(collection_path):
        return None
    wanted = Expression.compile(asked).evaluate(_is_torch)
    return None if wanted or "gpu" in asked.split() else True


def _is_torch(name: str, /, **_: str | int | bool | None) -> bool:
    """Whether a test that imports torch may have a mark."""
    return name in ("torch", "long")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.parent == here and _has_torch(item.path):
            item.add_marker(pytest.mark.torch)
