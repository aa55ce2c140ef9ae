"""One log file -> its records, and the position up to which it was read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from hpc_train.errors import LogParseError
from hpc_train.model.log_selection import LogPattern
from hpc_train.model.record import Pack
from hpc_train.records.find_logs import rank_of, readable
from hpc_train.records.line_dispatch import Asked, Mark, dispatch
from hpc_train.records.live_pipe_batches import is_live
from hpc_train.records.log_file import is_plain, open_log, unreadable_kind
from hpc_train.records.parse_stats import ParseStats
from hpc_train.records.parsers.base import LogParser
from hpc_train.records.parsers.pattern import UserPatterns
from hpc_train.records.record_codec import Packer, pressed
from hpc_train.records.run_parsers import hits_in, maker
from hpc_train.timed_regex import TimedPattern


class Log(NamedTuple):
    """A log file, its run, and its name in records."""

    run: str
    path: Path
    source: str


class Wanted(NamedTuple):
    """The parsers to use, the user's patterns, and the pattern of a prefix of this site.

    `usual`: all parsers and the settings of the study, without options of one command.
    `guessing`: the parser of logs in which these find no measurement.
    """

    parsers: tuple[str, ...]
    prefix: str = ""
    patterns: tuple[LogPattern, ...] = ()
    usual: bool = True
    guessing: str = ""

    def with_patterns(self, patterns: Sequence[LogPattern]) -> Wanted:
        """Return the same with the patterns of a study, unless one format was named."""
        if len(self.parsers) == 1:
            return self
        return self._replace(patterns=(*self.patterns, *patterns))


class Reading(msgspec.Struct):
    """The result of reading a file: packs of its records, and statistics.

    `offset` [B] is where its last whole line ends, `line` the number of the next one; `resumable`
    is true if reading may continue there when the file has grown.
    """

    packs: list[bytes] = msgspec.field(default_factory=list)
    census: ParseStats = msgspec.field(default_factory=ParseStats)
    offset: int = 0
    line: int = 1
    resumable: bool = False


Parsers = Mapping[str, LogParser]


def parsers_of(wanted: Wanted) -> dict[str, LogParser]:
    """Return a new parser of each kind; those of user patterns come first."""
    own = {"pattern": UserPatterns(wanted.patterns)} if wanted.patterns else {}
    return own | {name: maker(name)() for name in wanted.parsers}


def read(log: Log, parsers: Parsers, prefix: str, census: ParseStats, mark: Mark) -> Iterator[Pack]:
    """Yield the records of a file from `mark` on.

    A file that cannot be read is noted in `census`; the records before the damage are kept. The
    records of a live pipe are yielded line by line.
    """
    before, packer, live = census.lines, Packer(log.run, log.source), is_live(log.path)
    try:
        with open_log(log.path, mark.offset) as stream:
            readers = tuple(parsers.values())
            lines = dispatch(stream, readers, rank_of(log.path), mark)
            site = TimedPattern(prefix) if prefix else None
            if site is not None:
                lines = _without_prefix(lines, site)
            for name, line, hits in hits_in(lines, parsers, log.source, census):
                packer.add(name, line, hits)
                if packer.is_full or live:
                    yield packer.taken()
            _note_slow(parsers, site, log.source, census)
        if census.lines == before and (kind := unreadable_kind(log.path)):
            census.failed[log.source] = readable(f"{log.path}: {kind}")
    except LogParseError as error:
        census.failed[log.source] = readable(error.message)
    if len(packer):
        yield packer.taken()


def _note_slow(
    parsers: Parsers, site: TimedPattern | None, source: str, census: ParseStats
) -> None:
    """Note the patterns of the user that were left out."""
    for parser in parsers.values():
        for regex, number in getattr(parser, "too_slow", {}).items():
            census.slow.setdefault(f"the pattern {regex!r}", f"{source}:{number}")
    if site is not None and site.is_slow:
        census.slow.setdefault(f"the prefix {site.text!r}", source)


def whole(log: Log, wanted: Wanted) -> Reading:
    """Read a file from its beginning."""
    reading = Reading()
    for _ in extend(log, wanted, reading):
        pass
    return reading


def extend(log: Log, wanted: Wanted, reading: Reading) -> Iterator[Pack]:
    """Yield the records after the end of a reading, and add them to it."""
    parsers, mark = parsers_of(wanted), Mark(reading.offset, reading.line)
    census = reading.census
    for pack in read(log, parsers, wanted.prefix, census, mark):
        reading.packs.append(pressed(pack))
        yield pack
    resumable = mark.end == mark.offset and _remember_nothing(parsers, wanted)
    reading.resumable = resumable and not census.failed and is_plain(log.path)
    reading.offset, reading.line = mark.offset, mark.line


def _remember_nothing(parsers: Parsers, wanted: Wanted) -> bool:
    """Whether new parsers would continue as these would."""
    fresh = parsers_of(wanted)
    return all(_same(parsers[name], fresh[name]) for name in parsers)


def _same(one: object, other: object) -> bool:
    """Whether two objects are equal or, without `__eq__`, have equal attributes."""
    if one is other or type(one) is not type(other):
        return one is other
    if type(one).__eq__ is not object.__eq__:
        return one == other
    parts = getattr(one, "__dict__", None)
    if parts is None:
        return False
    others = vars(other)
    return parts.keys() == others.keys() and all(_same(parts[key], others[key]) for key in parts)


def _without_prefix(lines: Iterator[Asked], site: TimedPattern) -> Iterator[Asked]:
    for line, asked in lines:
        line.peel(site)
        yield line, asked
