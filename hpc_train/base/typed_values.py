"""Plain values -> typed values, each with its origin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from hpc_train.base.data_folders import data_file
from hpc_train.base.errors import HpcTrainError
from hpc_train.base.value import Sourced, Value, decode_unit
from hpc_train.base.yamlfile import read

T = TypeVar("T")


def decode(
    data: Any, kind: type[T], origins: Mapping[str, str], error: type[HpcTrainError]
) -> Sourced[T]:
    """Decode plain values into `kind`, with the origin of each.

    Raises:
        HpcTrainError: of class `error`, with the place, the error and the allowed values.
    """
    try:
        value = msgspec.convert(data, kind, dec_hook=decode_unit, strict=True)
    except msgspec.ValidationError as failure:
        # Inspecting the types is slow, and only needed after an error.
        from hpc_train.base.decode_errors import explain

        hint = f"{error.keys} describes each key" if error.keys else ""
        raise error(explain(str(failure), data, kind, origins), hint) from None
    return Sourced(value=value, origins=dict(origins))


def load_data(name: str, kind: type[T]) -> T:
    """Return a file of the package's data, below `hpc_train/data`, as a value.

    Raises:
        HpcTrainError: the installation is damaged.
    """
    document = read(data_file(name), HpcTrainError)
    return decode(document.data, kind, document.origins, HpcTrainError).value


def keys_of(kind: type[Value]) -> tuple[str, ...]:
    """Return the keys that a mapping of this kind may have, in order."""
    return kind.__struct_fields__
