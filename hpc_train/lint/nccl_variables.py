"""The variables that NCCL reads: since which version, documented or not, gone or renamed."""

from __future__ import annotations

from functools import cache
from typing import Literal

from hpc_train.decode import load_data
from hpc_train.model.value import Value


class Successor(Value, frozen=True, kw_only=True):
    """Since which version of NCCL a variable is gone or deprecated, and what to set instead."""

    version: str
    instead: str


class Plugin(Value, frozen=True, kw_only=True):
    """The plug-in that reads a variable, and the fabric on which it runs."""

    reader: str
    fabric: str


class Renamed(Value, frozen=True, kw_only=True):
    """The new name of a variable of PyTorch, and the torch that brought it."""

    name: str
    version: str


class NcclVariables(Value, frozen=True, kw_only=True):
    """What is known of the variables, by name; see the comments of `nccl_variables.yaml`.

    `documented` gives the version that brought a variable; the keys of `plugins` and the items of
    `undocumented_families` are beginnings of names; `values` are what NCCL accepts.
    """

    schema: Literal[1]
    documented: dict[str, str]
    undocumented: tuple[str, ...]
    undocumented_families: tuple[str, ...]
    removed: dict[str, Successor]
    deprecated: dict[str, Successor]
    never_read: dict[str, str]
    plugins: dict[str, Plugin]
    renamed_by_torch: dict[str, Renamed]
    values: dict[str, tuple[str, ...]]

    def plugin_of(self, name: str) -> Plugin | None:
        """Return the plug-in that reads a variable."""
        return next((one for start, one in self.plugins.items() if name.startswith(start)), None)

    def knows(self, name: str) -> bool:
        """Whether there is, or was, or should be a variable of that name."""
        groups = (
            self.documented,
            self.undocumented,
            self.removed,
            self.deprecated,
            self.never_read,
            self.renamed_by_torch,
        )
        if any(name in group for group in groups):
            return True
        return name.startswith(self.undocumented_families) or self.plugin_of(name) is not None


@cache
def nccl_variables() -> NcclVariables:
    """Return what `nccl_variables.yaml` says."""
    return load_data("nccl_variables.yaml", NcclVariables)
