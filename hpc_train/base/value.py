"""The base class of all values, and values with the origin of each part."""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec

from hpc_train.base.units import Duration, Memory
from hpc_train.base.version_ranges import GdrLevel, NodeBounds, Version, VersionBounds

T = TypeVar("T")
_UNITS = (Duration, Memory, GdrLevel, Version, VersionBounds, NodeBounds)


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An immutable, strictly decoded value; subclasses repeat `frozen=True, kw_only=True`."""


class Sourced(Value, Generic[T], frozen=True, kw_only=True):
    """A decoded value with the origin of each of its keys.

    `origins` maps a dotted key (`resources.nodes`) to `job.yaml:7`, `--set` or the like.
    """

    value: T
    origins: Mapping[str, str]

    def origin(self, key: str, default: str = "default") -> str:
        """Return the origin of `key`, or `default` if it was not set."""
        return self.origins.get(key, default)

    def near(self, key: str) -> str:
        """Return the origin of `key` or of its nearest parent: the place to correct."""
        while key and key not in self.origins:
            key = key.rpartition(".")[0]
        return self.origins.get(key, "")


def decode_unit(kind: type, raw: Any) -> Any:
    """Decode the unit types for msgspec.

    Raises:
        ValueError: the text is not of that unit; the message contains the allowed forms.
    """
    if kind in _UNITS:
        return kind.parse(raw)
    raise NotImplementedError(kind)


def encode_unit(value: Any) -> Any:
    """Encode the unit types for msgspec, in the notation of input files."""
    if isinstance(value, _UNITS):
        return str(value)
    raise NotImplementedError(type(value))
