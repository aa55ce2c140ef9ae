"""The variables that NCCL reads: first version, documented or not, removed or renamed."""

from __future__ import annotations

from functools import cache
from typing import Literal

from hpc_train.model.value import Value
from hpc_train.typed_values import load_data


class Successor(Value, frozen=True, kw_only=True):
    """The version of NCCL that removed or deprecated a variable, and the replacement."""

    version: str
    instead: str


class Plugin(Value, frozen=True, kw_only=True):
    """The plug-in that reads a variable, and the fabric on which it runs."""

    reader: str
    fabric: str


class Renamed(Value, frozen=True, kw_only=True):
    """The new name of a variable of PyTorch, and the version of PyTorch that introduced it."""

    name: str
    version: str


class NcclVariables(Value, frozen=True, kw_only=True):
    """The table of variables, by name; see the comments of `nccl_variables.yaml`.

    `documented` gives the version that introduced a variable; the keys of `plugins` and the items
    of `undocumented_families` are prefixes; `values` are the values that NCCL accepts.
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
        """Whether the table contains a variable of that name."""
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
    """Return the contents of `nccl_variables.yaml`."""
    return load_data("nccl_variables.yaml", NcclVariables)
