"""Tests that import torch, or start ranks that do: marked, and not even read where deselected."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

# What a test that imports torch may be marked with.
POSSIBLE = [frozenset({"torch", *more}) for more in ((), ("long",), ("gpu",), ("process",))]
_TORCH = re.compile(r"""^(?:import|from) torch|importorskip\("torch"\)|forked_trainer""", re.M)


def _has_torch(path: Path) -> bool:
    return path.suffix == ".py" and bool(_TORCH.search(path.read_text(encoding="utf-8")))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what imports torch, for seconds, only to be deselected."""
    asked = config.option.markexpr
    if not asked or not collection_path.is_file() or not _has_torch(collection_path):
        return None
    expression = Expression.compile(asked)
    wanted = any(expression.evaluate(_with(marks)) for marks in POSSIBLE)
    return None if wanted else True


def _with(marks: frozenset[str]) -> Callable[..., bool]:
    def has(name: str, /, **_: str | int | bool | None) -> bool:
        return name in marks

    return has


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.parent == here and _has_torch(item.path):
            item.add_marker(pytest.mark.torch)
