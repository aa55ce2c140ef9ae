"""The first bytes of a file -> what it is: compressed, or neither a log nor a table; its stream."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from typing import IO, Protocol, cast

import zstandard

COMPRESSED_START = 6
"""Number of first bytes that `packed_kind` needs."""
DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError)
"""What reading damaged data raises."""
_COMPRESSED = {
    b"\x1f\x8b": ".gz",
    b"\xfd7zXZ\x00": ".xz",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"BZh": ".bz2",
}


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
    return next((kind for magic, kind in _COMPRESSED.items() if start.startswith(magic)), "")


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


_EXPORT = "export the results as CSV, or name the log as text"
BINARY = f"is no text, but a binary file: {_EXPORT}"
START = 4096
# Without the characters that terminals use: backspace to carriage return, escape.
_CONTROLS = bytes([*range(8), *range(14, 27), *range(28, 32)])
_MAGIC = {
    b"%PDF-": "PDF",
    b"\x89PNG\r\n\x1a\n": "PNG image",
    b"\x89HDF\r\n\x1a\n": "HDF5 file",
    b"SQLite format 3\0": "SQLite database",
    b"PAR1": "Parquet file",
    b"PK\x03\x04": "zip archive, workbook or checkpoint",
}


def binary_kind(start: bytes) -> str:
    """Return what a file with these first bytes is; an empty text if it may be a log."""
    for magic, name in _MAGIC.items():
        if start.startswith(magic):
            return f"{name}: {_EXPORT}"
    # More than 1 of 20 bytes is a control character.
    controls = len(start) - len(start.translate(None, _CONTROLS))
    return BINARY if 20 * controls > len(start) else ""
