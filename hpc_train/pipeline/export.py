"""Records -> CSV, JSON lines or Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Literal

import msgspec

from hpc_train.errors import StoreError
from hpc_train.model.record import Record
from hpc_train.pipeline.csv_rows import csv_rows
from hpc_train.records.live import lots
from hpc_train.runs.files import write_file

Form = Literal["csv", "jsonl"]
_ENDINGS: dict[str, Form] = {".csv": "csv", ".jsonl": "jsonl", ".json": "jsonl"}
_AT_ONCE = 1000


def records_text(records: Iterable[Record], form: Form, *, live: bool = False) -> Iterator[str]:
    """Yield records as text, many lines at a time; those of a `live` log soon after they came."""
    source = iter(records)
    # The first record may be an error: then nothing is written.
    first = list(islice(source, 1))
    lines = chain(first, source)
    if form == "csv":
        yield ",".join(Record.__struct_fields__) + "\n"
        rows = csv_rows(lines)
    else:
        rows = (f"{msgspec.json.encode(record).decode()}\n" for record in lines)
    if live:
        yield from map("".join, lots(rows, _AT_ONCE))
    while text := "".join(islice(rows, _AT_ONCE)):
        yield text


def check_ending(path: Path) -> None:
    """Refuse a file's ending before any log is read.

    Raises:
        StoreError: it is not known.
    """
    if path.suffix != ".parquet" and path.suffix not in _ENDINGS:
        raise StoreError(f"{path}: the ending must be .csv, .jsonl or .parquet")


def write_records(records: Iterable[Record], path: Path) -> None:
    """Write records to a file as they come; the ending says how.

    Raises:
        StoreError: an ending that is not known, or a file that cannot be written.
        MissingExtraError: Parquet without pyarrow.
    """
    check_ending(path)
    if path.suffix == ".parquet":
        from hpc_train.tables.parquet import parquet_bytes

        write_file(path, parquet_bytes(tuple(records)))
        return
    write_file(path, (text.encode() for text in records_text(records, _ENDINGS[path.suffix])))
