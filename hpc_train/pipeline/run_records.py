"""A run -> its records: from its logs, by an index of them, or as they were kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from hpc_train.model.record import Record
from hpc_train.model.run import Run
from hpc_train.pipeline.keeping import keep, read_kept
from hpc_train.records.census import Census
from hpc_train.records.collect import logs_of, records_of
from hpc_train.records.index import Index
from hpc_train.records.reading import Log, Wanted

_DECODE = msgspec.json.Decoder(Record).decode_lines


def run_records(run: Run, look: Wanted, census: Census) -> tuple[Record, ...]:
    """Return a run's records: from its logs or, where they are gone, from records.jsonl.

    Those of a finished run are kept in records.jsonl; a folder that cannot be written is no
    reason to refuse the answer.
    """
    folder, seen = run.folder, Census()
    if not folder.logs.is_dir():
        return tuple(read_kept(folder.records, _DECODE) or ())
    logs = logs_of(folder.run_id, [folder.logs], folder.path)
    usual = look.usual
    found = indexed(logs, look, seen, folder.index) if usual else records_of(logs, look, seen)
    records = tuple(found)
    census.add(seen)
    if usual and run.state.finished:
        lines = b"".join(msgspec.json.encode(record) + b"\n" for record in records)
        keep(folder.records, lines)
    return records


def indexed(logs: Sequence[Log], look: Wanted, census: Census, path: Path) -> Iterator[Record]:
    """Yield the records of logs by the index in a file, which is written if it can be."""
    index = Index(look, path.read_bytes() if path.is_file() else b"")
    yield from records_of(logs, look, census, index)
    content = index.content()
    if content is not None:
        keep(path, content)
