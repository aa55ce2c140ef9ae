"""The rendering in progress: its values, the templates it used, and which extends which."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar

from hpc_train.model.value import Value


class Rendering:
    """One script on its way."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self.values = values
        # In order, each once.
        self.used: dict[str, None] = {}
        # Template and the one that it extends.
        self.extends: set[tuple[str, str]] = set()


current: ContextVar[Rendering] = ContextVar("current")
