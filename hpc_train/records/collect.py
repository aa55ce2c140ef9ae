"""logs -> Record: every measurement of some logs, each with its file and line."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from hpc_train import registry
from hpc_train.model.record import UNITS, Record
from hpc_train.records.log_file import log_files, open_log
from hpc_train.records.parsers.base import Hit, LogParser, LogText
from hpc_train.records.parsers.merge import in_order

_RANK_FILE = re.compile(r"rank-(\d{1,7})\.")
_BLOCK = 1 << 20

_log = logging.getLogger(__name__)

Parsers = dict[str, LogParser]


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
            _log.warning(
                "%s: %s: %d lines are cut, written over or hold no number",
                run,
                source,
                counts[source],
            )


def _records_of(
    run: str, source: str, data: LogText, parsers: Parsers, counts: Counter[str]
) -> Iterator[Record]:
    rank = _rank_of_file(source)
    names = [name for name, parser in parsers.items() if _occurs(data, parser.literals)]
    offset, line = 0, 1
    for number, hit in in_order([parsers[name].parse(data, rank) for name in names]):
        if not isinstance(hit, Hit):
            counts[source] += 1
            continue
        if hit.offset > offset:
            line += _newlines(data, offset, hit.offset)
            offset = hit.offset
        yield Record(
            run=run,
            source=source,
            line=line,
            parser=names[number],
            metric=hit.metric,
            value=hit.value,
            unit=hit.unit or UNITS[hit.metric],
            scope=hit.scope,
            step=hit.step,
            rank=hit.rank,
        )


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


def _newlines(data: LogText, start: int, end: int) -> int:
    if end - start <= _BLOCK:
        return data[start:end].count(b"\n")
    return sum(data[at : min(at + _BLOCK, end)].count(b"\n") for at in range(start, end, _BLOCK))
