"""Records -> CSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from hpc_train.errors import StoreError
from hpc_train.model.record import Record
from hpc_train.runs.files import write_file

_ENDINGS: dict[str, Literal["csv", "jsonl"]] = {".csv": "csv", ".jsonl": "jsonl", ".json": "jsonl"}


def records_text(records: Sequence[Record], form: Literal["csv", "jsonl"]) -> str:
    """Write records as text, one line each."""
    if form == "jsonl":
        return "".join(msgspec.json.encode(record).decode() + "\n" for record in records)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    fields = [field.name for field in msgspec.structs.fields(Record)]
    table.writerow(fields)
    table.writerows([getattr(record, field) for field in fields] for record in records)
    return text.getvalue()


def write_records(records: Sequence[Record], path: Path) -> None:
    """Write records to a file; the ending says how.

    Raises:
        StoreError: an ending that is not known, or a file that cannot be written.
        MissingExtraError: Parquet without pyarrow.
    """
    if path.suffix == ".parquet":
        from hpc_train.tables.parquet import parquet_bytes

        write_file(path, parquet_bytes(records))
        return
    if path.suffix not in _ENDINGS:
        raise StoreError(f"{path}: the ending must be .csv, .jsonl or .parquet")
    write_file(path, records_text(records, _ENDINGS[path.suffix]).encode())
