"""The base of all values, and values that remember where each part came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec

from hpc_train.model.units import Duration, Memory
from hpc_train.model.versions import GdrLevel, NodeBounds, Version, VersionBounds

T = TypeVar("T")
_UNITS = (Duration, Memory, GdrLevel, Version, VersionBounds, NodeBounds)


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An immutable, strictly decoded value; subclasses say `frozen=True, kw_only=True` again."""


class Sourced(Value, Generic[T], frozen=True, kw_only=True):
    """A decoded value with the place that each of its keys came from.

    `origins` maps a dotted key (`resources.nodes`) to `job.yaml:7`, `--set` or the like.
    """

    value: T
    origins: Mapping[str, str]

    def origin(self, key: str, default: str = "default") -> str:
        """Return where the value of `key` was written, or `default` when nobody wrote it."""
        return self.origins.get(key, default)

    def near(self, key: str) -> str:
        """Return where `key`, or the nearest part above it, was written: the place to mend."""
        while key and key not in self.origins:
            key = key.rpartition(".")[0]
        return self.origins.get(key, "")


def decode_unit(kind: type, raw: Any) -> Any:
    """Decode the unit types for msgspec.

    Raises:
        ValueError: the text is not of that unit; the message says what is allowed.
    """
    if kind in _UNITS:
        return kind.parse(raw)
    raise NotImplementedError(kind)


def encode_unit(value: Any) -> Any:
    """Encode the unit types for msgspec, as a person would write them."""
    if isinstance(value, _UNITS):
        return str(value)
    raise NotImplementedError(type(value))
