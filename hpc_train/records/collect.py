"""logs -> Record: every measurement of some logs, each with its file and line."""

from __future__ import annotations

import heapq
import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from hpc_train import registry
from hpc_train.model.record import UNITS, Record
from hpc_train.records.log_file import log_files, open_log
from hpc_train.records.parsers.base import Hit, LogParser, LogText, Unreadable

_RANK_FILE = re.compile(r"rank-(\d{1,7})\.")
_BLOCK = 1 << 20

_log = logging.getLogger(__name__)

Parsers = dict[str, LogParser]
Found = tuple[Hit | Unreadable, str]


def collect(
    run: str,
    paths: Sequence[Path],
    parser: str = "auto",
    *,
    root: Path | None = None,
    unreadable: Counter[str] | None = None,
) -> Iterator[Record]:
    """Yield the records of log files, ordered by file name and line.

    A folder among `paths` stands for its `*.out` and `*.log` files, plain or gzipped. `auto` uses
    every parser that has a literal in the file. `source` is written relative to `root`. Lines that
    were cut or written over are skipped with a warning, and counted by source in `unreadable`.

    Raises:
        UnknownNameError: no such parser (at once).
        LogParseError: a file cannot be read (when its turn comes).
    """
    names = registry.names("parsers") if parser == "auto" else (parser,)
    parsers = {name: cast(LogParser, registry.load("parsers", name)) for name in names}
    counts: Counter[str] = Counter() if unreadable is None else unreadable
    return _records(run, list(paths), parsers, root, counts)


def _records(
    run: str, paths: list[Path], parsers: Parsers, root: Path | None, counts: Counter[str]
) -> Iterator[Record]:
    for path in log_files(paths):
        source = _source(path, root)
        yield from _records_of(run, source, open_log(path), parsers, counts)
        if counts[source]:
            _log.warning("%s: %d lines are cut or written over", source, counts[source])


def _records_of(
    run: str, source: str, data: LogText, parsers: Parsers, counts: Counter[str]
) -> Iterator[Record]:
    lines = _LineCounter(data)
    for hit, parser in _found(data, parsers, _rank_of_file(source)):
        if isinstance(hit, Unreadable):
            counts[source] += 1
            continue
        yield Record(
            run=run,
            source=source,
            line=lines.line_of(hit.offset),
            parser=parser,
            metric=hit.metric,
            value=hit.value,
            unit=hit.unit or UNITS[hit.metric],
            scope=hit.scope,
            step=hit.step,
            rank=hit.rank,
        )


def _found(data: LogText, parsers: Parsers, rank: int | None) -> Iterator[Found]:
    streams = [
        _named(name, parser.parse(data, rank))
        for name, parser in parsers.items()
        if _occurs(data, parser.literals)
    ]
    return heapq.merge(*streams, key=_offset)


def _named(name: str, hits: Iterator[Hit | Unreadable]) -> Iterator[Found]:
    for hit in hits:
        yield hit, name


def _offset(found: Found) -> int:
    return found[0].offset


def _occurs(data: LogText, literals: tuple[bytes, ...]) -> bool:
    # `mmap.find` takes half as long again, on Python 3.11.
    return any(re.search(re.escape(literal), data) for literal in literals)


def _rank_of_file(source: str) -> int | None:
    match = _RANK_FILE.match(source.rpartition("/")[2])
    return int(match[1]) if match else None


def _source(path: Path, root: Path | None) -> str:
    if root is not None and path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    return path.as_posix()


class _LineCounter:
    """Line numbers, from 1, of ascending offsets; counts only what lies between two of them."""

    def __init__(self, data: LogText) -> None:
        self._data = data
        self._offset = 0
        self._line = 1

    def line_of(self, offset: int) -> int:
        while self._offset < offset:
            end = min(offset, self._offset + _BLOCK)
            self._line += self._data[self._offset : end].count(b"\n")
            self._offset = end
        return self._line
