"""What was read from a run's logs -> a file beside them, and back once the logs are gone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from hpc_train.errors import LogParseError, StoreError
from hpc_train.runs.files import write_file

T = TypeVar("T")


def keep(path: Path, content: bytes) -> None:
    """Write a file unless it holds just that; one that cannot be written is no error."""
    with suppress(StoreError, OSError):
        if path.is_file() and path.read_bytes() == content:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, content)


def read_kept(path: Path, decode: Callable[[bytes], T]) -> T | None:
    """Read what was kept; None where nothing was.

    Raises:
        LogParseError: the file is damaged.
    """
    if not path.exists():
        return None
    try:
        return decode(path.read_bytes())
    except msgspec.DecodeError as failure:
        raise LogParseError(f"{path}: damaged: {failure}") from None
