"""Annotations of the types are objects, which msgspec need not compile at each start."""

from __future__ import annotations

import importlib
from pathlib import Path

import msgspec
import pytest

import hpc_train.model

MODULES = sorted(path.stem for path in Path(hpc_train.model.__path__[0]).glob("[!_]*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_no_annotation_is_a_string(name: str) -> None:
    module = importlib.import_module(f"hpc_train.model.{name}")
    types = [
        one
        for one in vars(module).values()
        if isinstance(one, type)
        and issubclass(one, msgspec.Struct)
        and one.__module__ == module.__name__
    ]
    strings = {
        f"{one.__name__}.{field}"
        for one in types
        for field, kind in vars(one).get("__annotations__", {}).items()
        if isinstance(kind, str)
    }
    assert strings == set()
