"""Packs of records -> text, as CSV or JSON lines; a file with such text -> its records."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from hpc_train.base.errors import LogParseError, newer_version
from hpc_train.base.files import is_regular, open_regular
from hpc_train.logs.record import Pack, Record

SCHEMA = 1
_FIRST = 64 * 1024
# Limit of a line: a file without line ends that is not a record file would be read as one line.
_LONGEST = 1 << 20
_NEEDED = ("run", "source", "line", "parser", "metric", "value")
_FIELDS = frozenset(Record.__struct_fields__)
_NULLABLE = ("step", "rank", "node", "message_size")
_AGAIN = "write it again: hpctrain collect LOG… -o FILE"


def is_record_file(path: Path) -> bool:
    """Whether a file contains records: by its suffix and the names in its first line."""
    if path.suffix == ".parquet":
        return True
    if path.suffix not in (".csv", ".jsonl", ".json") or not is_regular(path):
        return False
    with open_regular(path) as stream:
        first = stream.readline(_FIRST).decode("utf-8-sig", "replace").strip()
    if path.suffix == ".csv":
        names = first.split(",")
    else:
        try:
            row = msgspec.json.decode(first)
        except (msgspec.DecodeError, RecursionError):
            # Damaged: reported when it is read.
            return all(f'"{name}":' in first for name in _NEEDED)
        names = list(row) if isinstance(row, dict) else []
    return set(_NEEDED).issubset(names)


def read_record_file(path: Path) -> tuple[Record, ...]:
    """Read the records of a CSV or JSON lines file.

    Raises:
        LogParseError: a newer hpctrain wrote the file, or a line is damaged (file:line).
    """
    rows = _csv_rows(path) if path.suffix == ".csv" else _json_rows(path)
    try:
        return tuple(_record(f"{path}:{line}", row) for line, row in rows)
    except OSError as failure:
        raise LogParseError(f"{path}: {failure.strerror or failure}") from None
    except UnicodeDecodeError as failure:
        raise LogParseError(f"{path}: not UTF-8 text (byte {failure.start})", _AGAIN) from None


def newer(where: str, schema: object) -> LogParseError:
    """Return the error for a file of a newer schema."""
    return LogParseError(*newer_version(where, schema, SCHEMA))


def json_lines(pack: Pack) -> str:
    """Return the records of a pack as JSON lines."""
    return "".join([f"{msgspec.json.encode(record).decode()}\n" for record in pack.records()])


def csv_rows(packs: Iterable[Pack]) -> Iterator[str]:
    """Yield the lines of each pack, in the order of the fields of `Record`."""
    for pack in packs:
        text = io.StringIO()
        # A line end within a cell is quoted if it is the line end of the table.
        rows = map(msgspec.structs.astuple, pack.records())
        csv.writer(text, lineterminator="\n").writerows(rows)
        yield text.getvalue()


def _record(where: str, row: Any) -> Record:
    if not isinstance(row, dict):
        raise LogParseError(f"{where}: damaged: no record", _AGAIN)
    if row.get("schema", SCHEMA) != SCHEMA:
        raise newer(where, row["schema"])
    unknown = sorted(row.keys() - _FIELDS - {"schema"}, key=str)
    if unknown:
        raise newer(where, f"with {unknown[0]!r}")
    fields = {name: value for name, value in row.items() if name != "schema"}
    try:
        return msgspec.convert(fields, Record, strict=False)
    except msgspec.ValidationError as failure:
        raise LogParseError(f"{where}: damaged: {failure}", _AGAIN) from None


def _json_rows(path: Path) -> Iterator[tuple[int, Any]]:
    decode = msgspec.json.Decoder().decode
    with open_regular(path) as stream:
        for line, text in enumerate(iter(lambda: stream.readline(_LONGEST), b""), start=1):
            if not text.strip():
                continue
            try:
                yield line, decode(text)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as failure:
                message = f"{path}:{line}: damaged: {failure}"
                raise LogParseError(message, _AGAIN) from None


def _csv_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with io.TextIOWrapper(open_regular(path), encoding="utf-8-sig", newline="") as stream:
        table = csv.reader(stream, strict=True)
        try:
            names = next(table)
            for cells in table:
                if len(cells) != len(names):
                    message = (
                        f"{path}:{table.line_num}: {len(cells)} of {len(names)} cells: cut off?"
                    )
                    raise LogParseError(message, _AGAIN)
                row: dict[str, Any] = dict(zip(names, cells, strict=True))
                row |= {name: None for name in _NULLABLE if row.get(name) == ""}
                yield table.line_num, row
        except csv.Error as failure:
            raise LogParseError(f"{path}:{table.line_num}: damaged: {failure}", _AGAIN) from None
