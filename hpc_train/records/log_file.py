"""Opens a log so that its size does not matter: mapped, not read."""

from __future__ import annotations

import gzip
import mmap
import shutil
import tempfile
import zlib
from pathlib import Path
from typing import IO

from hpc_train.errors import LogParseError
from hpc_train.records.parsers.base import LogText

_PATTERNS = ("*.out", "*.log", "*.out.gz", "*.log.gz")
_BLOCK = 1 << 20


def log_files(paths: list[Path]) -> list[Path]:
    """Return the log files among `paths` in order: a file itself, of a folder what lies in it."""
    files: set[Path] = set()
    for path in paths:
        files.update(_inside(path) if path.is_dir() else [path])
    return sorted(files)


def open_log(path: Path) -> LogText:
    """Map a log into memory; a compressed one or a pipe is copied to a temporary file first.

    Raises:
        LogParseError: the file cannot be read, or its compressed data end too early.
    """
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as packed:
                return _spooled(packed)
        with path.open("rb") as stream:
            return _mapped(stream) if path.is_file() else _spooled(stream)
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise LogParseError(f"{path}: cannot be read: {reason}") from error


def _inside(folder: Path) -> list[Path]:
    return [found for pattern in _PATTERNS for found in folder.glob(pattern) if found.is_file()]


def _mapped(stream: IO[bytes]) -> LogText:
    try:
        # Never closed by hand: matches still hold it when a reader stops early.
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:
        # An empty file cannot be mapped.
        return b""


def _spooled(stream: IO[bytes] | gzip.GzipFile) -> LogText:
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(stream, copy, _BLOCK)
        copy.flush()
        return _mapped(copy)
