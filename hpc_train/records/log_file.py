"""Path -> stream of a log's bytes, decompressed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol, cast

import zstandard

from hpc_train.errors import LogParseError
from hpc_train.records.binary_kinds import binary_kind, first_bytes
from hpc_train.records.log_blocks import Stream
from hpc_train.regularfile import open_regular, open_stream

_MAGIC = {b"\x1f\x8b": ".gz", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst", b"BZh": ".bz2"}
# Capacity of a pipe on Linux [B].
_PIPE = 1 << 16
_DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError)


class _Packed(Protocol):
    def readinto1(self, buffer: memoryview, /) -> int: ...


class _Unpacked:
    """Fills buffers from a decompressor; the data before a damaged part are kept."""

    def __init__(self, packed: _Packed) -> None:
        self._packed = packed
        self._damage: Exception | None = None

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer with what is available."""
        if self._damage is not None:
            raise self._damage
        filled = 0
        try:
            while filled < len(buffer):
                count = self._packed.readinto1(buffer[filled:])
                if not count:
                    break
                filled += count
        except _DAMAGE as damage:
            if not filled:
                raise
            self._damage = damage
        return filled


@contextmanager
def open_log(path: Path, offset: int = 0) -> Iterator[Stream]:
    """Open a log for reading, from `offset` [B] of a plain file on.

    Data compressed with gzip, xz, zstd or bzip2 are decompressed, whatever the file name.

    Raises:
        LogParseError: the file cannot be read, or its compressed data are damaged.
    """
    try:
        with open_stream(path) as file:
            if not file.seekable():
                yield _pipe(io.BufferedReader(cast(io.RawIOBase, file), _PIPE))
                return
            unpack = _UNPACK.get(_kind(path, file))
            if offset:
                file.seek(offset)
            yield _Unpacked(unpack(file)) if unpack else cast(Stream, file)
    except _DAMAGE as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise LogParseError(f"{path}: cannot be read: {reason}") from error


def unreadable_kind(path: Path) -> str:
    """Return what a file is that is no log, and what to do; an empty text if it may be one."""
    if not path.is_file():
        return ""
    with open_log(path) as stream:
        return binary_kind(first_bytes(stream), path.suffix)


def is_plain(path: Path) -> bool:
    """Whether a file contains the bytes of the log uncompressed."""
    if not path.is_file():
        return False
    with open_regular(path) as file:
        return _kind(path, file) not in _UNPACK


def _kind(path: Path, file: IO[bytes]) -> str:
    start = file.read(6)
    file.seek(0)
    return _packed(start) or path.suffix


def _packed(start: bytes) -> str:
    return next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), "")


class _Plain:
    """Returns what a pipe has delivered so far, instead of waiting for a full buffer."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = file

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill a part of the buffer."""
        # With a larger buffer than the pipe, the reader would wait for more data than the pipe has.
        return self._file.readinto1(buffer[:_PIPE])


def _pipe(file: io.BufferedReader) -> Stream:
    unpack = _UNPACK.get(_packed(file.peek(6)))
    return _Unpacked(unpack(file)) if unpack else _Plain(file)


def _zstd(file: IO[bytes]) -> _Packed:
    reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    return cast(_Packed, reader)


_UNPACK: dict[str, Callable[[IO[bytes]], _Packed]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".xz": lzma.LZMAFile,
    ".zst": _zstd,
    ".bz2": bz2.BZ2File,
}
