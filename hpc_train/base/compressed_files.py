"""Compressed data -> a stream of the bytes, by the first bytes of a file or its extension."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from typing import IO, Protocol, cast

import zstandard

START = 6
"""Number of first bytes that `packed_kind` needs."""
DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError)
"""What reading damaged data raises."""
_MAGIC = {b"\x1f\x8b": ".gz", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst", b"BZh": ".bz2"}


class Unpacker(Protocol):
    """A decompressor that reads from a file."""

    def readinto1(self, buffer: memoryview, /) -> int:
        """Fill a part of the buffer, with one read if possible."""
        ...

    def read(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes, or all."""
        ...


def packed_kind(start: bytes) -> str:
    """Return the extension of a compressed file, by its first bytes; empty for any other."""
    return next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), "")


def _zstd(file: IO[bytes]) -> Unpacker:
    reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    return cast(Unpacker, reader)


UNPACK: dict[str, Callable[[IO[bytes]], Unpacker]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".xz": lzma.LZMAFile,
    ".zst": _zstd,
    ".bz2": bz2.BZ2File,
}
"""The decompressors by extension."""
