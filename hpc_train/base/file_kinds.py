"""The first bytes of a file -> what it is: compressed, or neither a log nor a table; its stream."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
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


BINARY = "is no text, but a binary file: export the results as CSV, or name the log as text"
START = 4096
# Without the characters that terminals use: backspace to carriage return, escape.
_CONTROLS = bytes([*range(8), *range(14, 27), *range(28, 32)])
_SAVE = "save the sheet with the results as CSV"
_CHECKPOINT = "it is never loaded: name the log that was printed while it was written"
_UNPACK = "unpack it and name the files in it"
_TYPE_IT = "write the results into a CSV file"
_DATABASE = "export the table as CSV: sqlite3 -csv -header; of MLflow: mlflow experiments csv -x ID"
_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"%PDF-", "PDF", _TYPE_IT),
    (b"\x89PNG\r\n\x1a\n", "PNG image", _TYPE_IT),
    (b"\xff\xd8\xff", "JPEG image", _TYPE_IT),
    (b"\x89HDF\r\n\x1a\n", "HDF5 file", "export the values as CSV"),
    (b"SQLite format 3\0", "SQLite database", _DATABASE),
    (b"\x93NUMPY", "NumPy array", "export the values as CSV"),
    (b"PAR1", "Parquet file without the extension .parquet", "name it FILE.parquet, unpacked"),
    (b"7z\xbc\xaf\x27\x1c", "7z archive", _UNPACK),
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PICKLE = re.compile(rb"\x80[\x02-\x05](?:\x95.{8})?[\x8a-\x8ec}\](X\x4b]", re.DOTALL)
_HTML = re.compile(rb"(?:<\?xml[^>]{0,200}>\s{0,9})?<(?:!doctype\s{1,9}html|html)\b", re.IGNORECASE)
_TAR = slice(257, 262)


def binary_kind(start: bytes, ending: str = "") -> str:
    """Return what a file is, and what to do with it; an empty text if it may be a log.

    `start` are its first bytes, and `ending` its extension.
    """
    for magic, name, advice in _MAGIC:
        if start.startswith(magic):
            return f"{name}: {advice}"
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        if b"/data.pkl" in start:
            return f"PyTorch checkpoint: {_CHECKPOINT}"
        return f"Excel workbook: {_SAVE}" if ending == ".xlsx" else f"zip archive: {_UNPACK}"
    if start.startswith(_OLE):
        return "Microsoft Office 97 document: save it as CSV"
    return _by_form(start) or (BINARY if _is_binary(start) else "")


def _by_form(start: bytes) -> str:
    if start[_TAR] == b"ustar":
        return f"tar archive: {_UNPACK}"
    if _PICKLE.match(start):
        return f"Python pickle: {_CHECKPOINT}"
    if _HTML.match(start.lstrip()):
        return "HTML page: save the results as CSV, or the log as text"
    return ""


def _is_binary(start: bytes) -> bool:
    """Whether more than 1 of 20 bytes is a control character."""
    return 20 * (len(start) - len(start.translate(None, _CONTROLS))) > len(start)
