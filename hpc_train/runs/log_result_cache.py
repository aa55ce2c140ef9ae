"""Cache files of results from a run's logs, which are read if the logs are deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from hpc_train.base.errors import LogParseError, StoreError
from hpc_train.base.files import is_own, is_regular, is_there, read_regular, remove_stale
from hpc_train.runs.json_files import write_file

T = TypeVar("T")


def write_cache(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file; a failure is ignored, and in a folder of another user nothing is written.

    Unchanged content is not written again, unless it is given in parts.
    """
    with suppress(StoreError, OSError):
        if not is_own(path.absolute().parent):
            return
        remove_stale(path)
        if is_there(path) and not is_regular(path):
            # Writing to a FIFO would wait for a reader.
            return
        if isinstance(content, bytes) and is_there(path) and read_regular(path) == content:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, content)


def read_cache(path: Path, decode: Callable[[bytes], T]) -> T | None:
    """Read a cache file; None if there is none.

    Raises:
        LogParseError: the file is damaged.
    """
    if not is_there(path):
        return None
    try:
        return decode(read_regular(path))
    except OSError as failure:
        raise LogParseError(f"{path}: {failure.strerror or failure}") from None
    except (msgspec.DecodeError, RecursionError) as failure:
        raise LogParseError(f"{path}: damaged: {failure}") from None
