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
    (b"\x7fELF", "program or library (ELF)", "name the log that it printed"),
    (b"\x93NUMPY", "NumPy array", "export the values as CSV"),
    (b"PAR1", "Parquet file without the extension .parquet", "name it FILE.parquet, unpacked"),
    (b"ARROW1\0\0", "Feather or Arrow file", "write it as Parquet: FILE.parquet"),
    (b"ORC", "ORC file", "write it as Parquet: FILE.parquet"),
    (b"Obj\x01", "Avro file", "export the values as CSV"),
    (b"MATLAB 5.0 MAT-file", "MATLAB file", "export the values as CSV"),
    (b"7z\xbc\xaf\x27\x1c", "7z archive", _UNPACK),
    (b"Rar!\x1a\x07", "RAR archive", _UNPACK),
)
# Members of a zip archive, by a name at its start.
_MEMBERS: tuple[tuple[bytes, str, str], ...] = (
    (rb"PK\x03\x04.{26}xl/", "Excel workbook", _SAVE),
    (rb"PK\x03\x04.{26}word/", "Word document", _TYPE_IT),
    (rb"mimetypeapplication/vnd\.oasis", "OpenDocument file", _SAVE),
    (rb"Index/[A-Za-z]", "Numbers document", _SAVE),
    (rb"/data\.pkl", "PyTorch checkpoint", _CHECKPOINT),
    (rb"PK\x03\x04.{26}[^/\0]{1,200}\.npy", "NumPy archive (.npz)", "export the values as CSV"),
)
_ENDINGS = {".xlsx": 0, ".xlsm": 0, ".docx": 1, ".ods": 2, ".odt": 2, ".numbers": 3}
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PICKLE = re.compile(rb"\x80[\x02-\x05](?:\x95.{8})?[\x8a-\x8ec}\](X\x4b]", re.DOTALL)
_HTML = re.compile(rb"(?:<\?xml[^>]{0,200}>\s{0,9})?<(?:!doctype\s{1,9}html|html)\b", re.IGNORECASE)
_GIT = re.compile(rb"(?:blob|tree|commit|tag) \d+\0")
_TAR = slice(257, 262)


def binary_kind(start: bytes, ending: str = "") -> str:
    """Return what a file is, and what to do with it; an empty text if it may be a log.

    `start` are its first bytes, and `ending` its extension.
    """
    for magic, name, advice in _MAGIC:
        if start.startswith(magic):
            return f"{name}: {advice}"
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip(start, ending.lower())
    if start.startswith(_OLE):
        document = ending.lower() == ".doc"
        return f"Word 97 document: {_TYPE_IT}" if document else _excel_97(ending.lower())
    return _by_form(start) or (BINARY if _is_binary(start) else "")


def _excel_97(ending: str) -> str:
    name = "Excel 97 workbook" if ending == ".xls" else "Microsoft Office 97 document"
    return f"{name}: save it as CSV"


def _zip(start: bytes, ending: str) -> str:
    for pattern, name, advice in _MEMBERS:
        if re.search(pattern, start, re.DOTALL):
            return f"{name}: {advice}"
    if ending in _ENDINGS:
        _, name, advice = _MEMBERS[_ENDINGS[ending]]
        return f"{name}: {advice}"
    return f"zip archive: {_UNPACK}"


def _by_form(start: bytes) -> str:
    if start[_TAR] == b"ustar":
        return f"tar archive: {_UNPACK}"
    if _PICKLE.match(start):
        return f"Python pickle: {_CHECKPOINT}"
    if _HTML.match(start.lstrip()):
        return "HTML page: save the results as CSV, or the log as text"
    if start[:1] == b"\x78" and _GIT.match(_inflated(start)):
        return "object of a git repository: name a file of the working tree"
    return ""


def _inflated(start: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(start, 64)
    except zlib.error:
        return b""


def _is_binary(start: bytes) -> bool:
    """Whether more than 1 of 20 bytes is a control character."""
    return 20 * (len(start) - len(start.translate(None, _CONTROLS))) > len(start)
