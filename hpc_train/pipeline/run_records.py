"""A run -> its records in packs: from its logs, with an index, or from stored records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from hpc_train.errors import LogParseError
from hpc_train.model.record import Pack, Record, packs_of
from hpc_train.model.run import Run
from hpc_train.records.collect import each_once, logs_of, packs_in
from hpc_train.records.parse_stats import ParseStats
from hpc_train.records.read_log import Log, Wanted
from hpc_train.records.record_file import json_lines, read_record_file
from hpc_train.records.record_index import Index
from hpc_train.regularfile import is_folder, is_regular, read_regular
from hpc_train.runs.cache_file import read_cache, write_cache

_DECODE = msgspec.json.Decoder(Record).decode_lines


def run_records(run: Run, options: Wanted, stats: ParseStats) -> Iterator[Pack]:
    """Yield a run's records: from its logs or, if they are deleted, from records.jsonl.

    Those of a finished run are stored in records.jsonl; a failure to write is ignored.
    """
    folder, own_stats = run.folder, ParseStats()
    if not is_folder(folder.logs):
        yield from packs_of(_stored(folder.records))
        return
    logs = logs_of(folder.run_id, [folder.logs], folder.path)
    if not options.usual:
        yield from packs_in(logs, options, own_stats)
        stats.add(own_stats)
        return
    yield from indexed(logs, options, own_stats, folder.index)
    stats.add(own_stats)
    if run.state.finished and _older(folder.records, folder.index):
        index = Index(options, _content(folder.index))
        packs = each_once(logs, options, ParseStats(), index)
        write_cache(folder.records, (json_lines(pack).encode() for pack in packs))


def _stored(path: Path) -> Sequence[Record]:
    try:
        return read_cache(path, _DECODE) or ()
    except LogParseError:
        # Slower, but reports the damaged line, or that a newer hpctrain wrote it.
        return read_record_file(path)


def _older(records: Path, index: Path) -> bool:
    """Whether the index was written later; the same index has the same records."""
    if not is_regular(index):
        return False
    return not is_regular(records) or records.stat().st_mtime_ns < index.stat().st_mtime_ns


def _content(path: Path) -> bytes:
    """Return the contents of an index; empty if it cannot be read."""
    try:
        return read_regular(path)
    except OSError:
        return b""


def indexed(logs: Sequence[Log], options: Wanted, stats: ParseStats, path: Path) -> Iterator[Pack]:
    """Yield the records of logs with the index in a file, which is updated if possible."""
    index = Index(options, _content(path))
    yield from packs_in(logs, options, stats, index)
    content = index.content()
    if content is not None:
        write_cache(path, content)
