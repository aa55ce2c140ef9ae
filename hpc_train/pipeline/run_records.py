"""A run -> its records: from its logs, by an index of them, or as they were kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from hpc_train.errors import LogParseError, StoreError
from hpc_train.model.record import Record
from hpc_train.model.run import Run
from hpc_train.records.census import Census
from hpc_train.records.collect import logs_of, records_of
from hpc_train.records.index import Index
from hpc_train.records.reading import Log, Wanted
from hpc_train.runs.files import write_file


def run_records(run: Run, look: Wanted, census: Census) -> tuple[Record, ...]:
    """Return a run's records: from its logs or, where they are gone, from records.jsonl.

    Those of a finished run are kept in records.jsonl; a folder that cannot be written is no
    reason to refuse the answer.
    """
    folder, seen = run.folder, Census()
    if not folder.logs.is_dir():
        return _kept(folder.records)
    logs = logs_of(folder.run_id, [folder.logs], folder.path)
    if not look.usual:
        return tuple(records_of(logs, look, seen))
    records = tuple(indexed(logs, look, seen, folder.index))
    census.add(seen)
    if run.state.finished:
        lines = b"".join(msgspec.json.encode(record) + b"\n" for record in records)
        if not folder.records.exists() or folder.records.read_bytes() != lines:
            _write_if_possible(folder.records, lines)
    return records


def indexed(logs: Sequence[Log], look: Wanted, census: Census, path: Path) -> Iterator[Record]:
    """Yield the records of logs by the index in a file, which is written if it can be."""
    index = Index(look, path.read_bytes() if path.is_file() else b"")
    yield from records_of(logs, look, census, index)
    content = index.content()
    if content is not None:
        _write_if_possible(path, content)


def _write_if_possible(path: Path, content: bytes) -> None:
    with suppress(StoreError, OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, content)


def _kept(path: Path) -> tuple[Record, ...]:
    if not path.exists():
        return ()
    try:
        return tuple(msgspec.json.Decoder(Record).decode_lines(path.read_bytes()))
    except msgspec.DecodeError as failure:
        raise LogParseError(f"{path}: damaged: {failure}") from None
