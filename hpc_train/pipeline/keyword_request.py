"""The arguments of a call in Python -> a request, with each argument as the origin of its value."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hpc_train.errors import ArgumentError
from hpc_train.pipeline.render import Request
from hpc_train.specs.override import Override


def keyword_request(
    path: Path,
    arguments: Sequence[str],
    site: str | None,
    keys: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> Request:
    """Return the request of `submit(path, arguments, site=…, KEY=VALUE…, settings={…})`.

    Values are those of a YAML file; None leaves a key out. `settings` override the `keys`, as
    `--set` overrides the other options.

    Raises:
        ArgumentError: a value that a job file cannot contain.
    """
    overrides = [_override(key, value, f"{key}=") for key, value in keys.items()]
    overrides += [_override(key, value, f"settings[{key!r}]") for key, value in settings.items()]
    given = tuple(override for override in overrides if override.value is not None)
    return Request(path=path, arguments=tuple(arguments), site=site, overrides=given)


def _override(key: str, value: Any, origin: str) -> Override:
    return Override(key=key, value=_plain(value, origin), origin=origin)


def _plain(value: Any, origin: str) -> Any:
    """Return a value as YAML would have read it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(inner, origin) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, origin) for inner in value]
    if hasattr(value, "__index__"):
        # An integer of numpy or pandas.
        return value.__index__()
    raise ArgumentError(
        f"{origin}: {type(value).__name__} is not a value of a job file",
        "use a number, text, a list or a dict",
    )
