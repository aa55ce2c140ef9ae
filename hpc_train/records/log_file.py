"""Paths -> logs: finds them in folders and opens them, plain or compressed."""

from __future__ import annotations

import gzip
import lzma
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import zstandard

from hpc_train.errors import LogParseError
from hpc_train.records.blocks import Stream

_LOG = re.compile(r"\.(?:out|log|err|txt|o\d+)(?:\.(?:gz|xz|zst))?$")
_RANK = re.compile(r"rank[-_.]?(\d{1,7})(?!\d)")


def log_files(paths: list[Path]) -> list[Path]:
    """Return the log files among `paths` in order: a file itself, of a folder what lies in it."""
    files: set[Path] = set()
    for path in paths:
        files.update(_inside(path) if path.is_dir() else [path])
    return sorted(files)


def rank_of(path: Path) -> int | None:
    """Return the global rank that a file's name states: `rank-3.out`, `worker_rank3.log`."""
    match = _RANK.search(path.name)
    return int(match[1]) if match else None


@contextmanager
def open_log(path: Path) -> Iterator[Stream]:
    """Open a log for reading from its start; gzip, xz and zstd are unpacked by their ending.

    Raises:
        LogParseError: the file cannot be read, or its compressed data are damaged.
    """
    try:
        with path.open("rb", buffering=0) as file:
            yield _unpacked(path.suffix, file)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise LogParseError(f"{path}: cannot be read: {reason}") from error


def _inside(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if _LOG.search(path.name) and path.is_file()]


def _unpacked(suffix: str, file: IO[bytes]) -> Stream:
    if suffix == ".gz":
        return gzip.GzipFile(fileobj=file)
    if suffix == ".xz":
        return lzma.LZMAFile(file)
    if suffix == ".zst":
        reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        return cast(Stream, reader)
    return cast(Stream, file)
