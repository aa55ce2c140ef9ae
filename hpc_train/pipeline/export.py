"""Records -> CSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Literal

import msgspec

from hpc_train.errors import StoreError
from hpc_train.model.record import Record
from hpc_train.runs.files import write_file

Form = Literal["csv", "jsonl"]
_ENDINGS: dict[str, Form] = {".csv": "csv", ".jsonl": "jsonl", ".json": "jsonl"}
_AT_ONCE = 1000


def records_text(records: Iterable[Record], form: Form) -> Iterator[str]:
    """Yield records as text, many lines at a time."""
    source = iter(records)
    fields = [field.name for field in msgspec.structs.fields(Record)]
    row, text = attrgetter(*fields), io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    # The first record may be an error: then nothing is written.
    part = list(islice(source, _AT_ONCE))
    if form == "csv":
        table.writerow(fields)
    while True:
        if form == "csv":
            table.writerows(map(row, part))
        else:
            text.writelines(msgspec.json.encode(record).decode() + "\n" for record in part)
        yield text.getvalue()
        text.seek(0)
        text.truncate()
        part = list(islice(source, _AT_ONCE))
        if not part:
            return


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
