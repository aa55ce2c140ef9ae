"""Records -> CSV, JSON lines or Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Literal

import msgspec

from hpc_train.errors import StoreError
from hpc_train.files import write_file
from hpc_train.model.record import Record
from hpc_train.records.csv_rows import csv_rows
from hpc_train.records.record_codec import Pack

Form = Literal["csv", "jsonl"]
_ENDINGS: dict[str, Form] = {".csv": "csv", ".jsonl": "jsonl", ".json": "jsonl"}


def records_text(packs: Iterable[Pack], form: Form) -> Iterator[str]:
    """Yield records as text, many lines at a time."""
    source = iter(packs)
    # The first record may be an error: then nothing is written.
    first = next(source, None)
    whole = source if first is None else chain((first,), source)
    if form == "csv":
        yield ",".join(Record.__struct_fields__) + "\n"
        yield from csv_rows(whole)
    else:
        yield from map(_json_lines, whole)


def _json_lines(pack: Pack) -> str:
    return "".join([f"{msgspec.json.encode(record).decode()}\n" for record in pack.records()])


def check_ending(path: Path) -> None:
    """Refuse a file's ending before any log is read.

    Raises:
        StoreError: it is not known.
    """
    if path.suffix != ".parquet" and path.suffix not in _ENDINGS:
        raise StoreError(f"{path}: the ending must be .csv, .jsonl or .parquet")


def write_records(packs: Iterable[Pack], path: Path) -> None:
    """Write records to a file as they come; the ending says how.

    Raises:
        StoreError: an ending that is not known, or a file that cannot be written.
        MissingExtraError: Parquet without pyarrow.
    """
    check_ending(path)
    if path.suffix == ".parquet":
        from hpc_train.tables.parquet import parquet_bytes

        records = tuple(record for pack in packs for record in pack.records())
        write_file(path, parquet_bytes(records))
        return
    write_file(path, (text.encode() for text in records_text(packs, _ENDINGS[path.suffix])))
