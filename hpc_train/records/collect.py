"""logs -> Record: every measurement of some logs, each with its file and line."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train import registry
from hpc_train.errors import LogParseError
from hpc_train.model.record import UNITS, Record
from hpc_train.records.census import Census
from hpc_train.records.hits import Makers, hits_of, maker
from hpc_train.records.line import Line
from hpc_train.records.log_file import log_files, open_log, rank_of
from hpc_train.records.parsers.base import OF_LINE, Hit

_log = logging.getLogger(__name__)


def collect(
    run: str,
    paths: Sequence[Path],
    parser: str = "auto",
    *,
    root: Path | None = None,
    census: Census | None = None,
) -> Iterator[Record]:
    """Yield the records of log files, ordered by file name and line.

    A folder among `paths` stands for the logs in it, plain or compressed. `auto` asks every parser
    that has a literal in a line, in the order of the registry: the first one that can read the line
    has it. `source` is written relative to `root`. A file that cannot be read, and lines that were
    cut or written over, are skipped with a warning, and counted in `census`.

    Raises:
        UnknownNameError: no such parser (at once).
        LogParseError: none of the files can be read.
    """
    names = registry.names("parsers") if parser == "auto" else (parser,)
    makers = {name: maker(name) for name in names}
    seen = Census() if census is None else census
    return _records(run, log_files(list(paths)), makers, root, seen)


def _records(
    run: str, files: Sequence[Path], makers: Makers, root: Path | None, census: Census
) -> Iterator[Record]:
    once: set[tuple[str, str, str]] = set()
    for path in files:
        source = _source(path, root)
        try:
            with open_log(path) as stream:
                for name, line, hit in hits_of(stream, makers, source, census, rank_of(path)):
                    key = (name, hit.metric, hit.once)
                    if not hit.once or key not in once:
                        yield _record(run, source, name, line, hit)
                    if hit.once:
                        once.add(key)
        except LogParseError as error:
            census.failed[source] = error.message
            _log.warning("%s: %s", run, error.message)
        if census.damaged[source]:
            number = census.damaged[source]
            _log.warning(
                "%s: %s: %d lines are cut, written over or hold no number", run, source, number
            )
    if census.failed and len(census.failed) == len(files):
        raise LogParseError(next(iter(census.failed.values())))


def _record(run: str, source: str, name: str, line: Line, hit: Hit) -> Record:
    return Record(
        run=run,
        source=source,
        line=line.number,
        parser=name,
        metric=hit.metric,
        value=hit.value,
        unit=hit.unit or UNITS[hit.metric],
        scope=hit.scope,
        step=hit.step,
        rank=line.rank if hit.rank == OF_LINE else hit.rank,
        steps=hit.steps,
        message_size=hit.message_size,
        variant=hit.variant,
    )


def _source(path: Path, root: Path | None) -> str:
    if root is not None and path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    return path.as_posix()
