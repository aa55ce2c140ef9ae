"""A file -> whether it is a table of results, and its columns and rows, whatever its kind.

CSV and JSON may be compressed; the bytes decide, not the extension. A folder of MLflow is a table.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Protocol

from hpc_train.compressed_files import DAMAGE, START, UNPACK, packed_kind
from hpc_train.errors import LogParseError
from hpc_train.imports.csv_table import ResultTable, is_csv_of_results, parse_csv
from hpc_train.imports.json_table import is_json_of_results, parse_json
from hpc_train.imports.mlruns_folder import is_mlruns, read_mlruns
from hpc_train.imports.workbook import WORKBOOKS, read_workbook, sheet_of
from hpc_train.regularfile import LARGEST, open_stream

_HEAD = 64 * 1024
_CSV = (".csv", ".tsv")
_JSON = (".json", ".jsonl", ".ndjson")


def is_result_table(path: Path) -> bool:
    """Whether a file is a table of results, by its extension and the names in its header.

    A file that cannot be read as what its extension says is one: reading it names the reason.
    """
    if path.is_dir():
        return is_mlruns(path)
    path, _ = sheet_of(path)
    name = _name(path)
    ending = Path(name).suffix
    if ending not in (*_CSV, *_JSON, *WORKBOOKS) or not path.is_file():
        return False
    if ending in WORKBOOKS:
        return True
    try:
        head = _contents(path, _HEAD)
    except LogParseError:
        return ending in _CSV
    if ending in _CSV:
        return is_csv_of_results(name, head)
    return is_json_of_results(head.decode("utf-8-sig", "replace"))


def read_table(path: Path, sheet: str = "") -> ResultTable:
    """Read a table of results; `sheet` is that of a workbook, if `FILE.xlsx:SHEET` names none.

    Raises:
        LogParseError: it cannot be read, or is not a table of results. MissingExtraError: openpyxl
            is not installed.
    """
    ending = Path(_name(path)).suffix
    if ending in WORKBOOKS:
        if path.suffix.lower() in UNPACK:
            raise LogParseError(
                f"{path}: compressed Excel workbook", f"unpack it: {ending} is a zip"
            )
        return read_workbook(path, sheet)
    file, named = sheet_of(path)
    if named:
        if sheet not in ("", named):
            raise LogParseError(f"{path}: also --sheet {sheet!r} is given", "name one sheet")
        return read_workbook(file, named)._replace(path=path)
    if sheet:
        raise LogParseError(f"{path}: not an Excel workbook, so it has no sheets", "omit --sheet")
    if path.is_dir():
        return read_mlruns(path)
    raw = _contents(path, LARGEST + 1)
    if len(raw) > LARGEST:
        raise LogParseError(f"{path}: larger than {LARGEST >> 30} GiB", "split the table")
    if ending in _JSON or (ending not in _CSV and raw.lstrip()[:1] in (b"{", b"[")):
        return parse_json(path, _utf8(path, raw))
    return parse_csv(path, raw)


def _name(path: Path) -> str:
    """Return the file name in lower case, without the extension of a compressed file."""
    name = path.name.lower()
    return name.removesuffix(path.suffix.lower()) if path.suffix.lower() in UNPACK else name


def _contents(path: Path, most: int) -> bytes:
    """Return at most the first `most` bytes, decompressed."""
    try:
        with open_stream(path) as file:
            # A pipe may deliver fewer bytes than asked for, and cannot be read again.
            start = _all(file, START)
            if not (kind := packed_kind(start)):
                return _all(file, most - len(start), start)
            packed = io.BytesIO(start + _all(file, LARGEST))
            return _all(UNPACK[kind](packed), most)
    except DAMAGE as failure:
        reason = failure.strerror if isinstance(failure, OSError) and failure.strerror else failure
        raise LogParseError(f"{path}: cannot be read: {reason}") from None


class _Source(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


def _all(file: _Source, most: int, start: bytes = b"") -> bytes:
    """Return what was read before, and at most so many bytes more."""
    parts = [start]
    while most > 0 and (part := file.read(min(most, 1 << 20))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def _utf8(path: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        line = raw[: failure.start].count(b"\n") + 1
        message = f"{path}:{line}: not UTF-8 text (byte {failure.start})"
        raise LogParseError(message, "save it in UTF-8") from None
