"""Measurements in lines -> packs, and packs as compressed bytes.

As compressed bytes, a pack takes a twentieth of the memory of its records as objects.
"""

from __future__ import annotations

import copy
import io
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import zstandard

from hpc_train.base.errors import LogParseError
from hpc_train.base.metrics import UNITS
from hpc_train.jobs.log_selection import LogPattern
from hpc_train.logs.formats.base import OF_LINE, Hit, LogParser
from hpc_train.logs.formats.formats import maker
from hpc_train.logs.formats.pattern import UserPatterns
from hpc_train.logs.line import Line, Mark, dispatch
from hpc_train.logs.log_file import open_log, rank_of, readable, unreadable_kind
from hpc_train.logs.record import LOT, Pack, Record, Scope

_LEVEL = 1


_Columns = tuple[list[int], list[int], list[float], list[int | None], list[int | None]]


class Packer:
    """Packs the measurements in the lines of one file."""

    def __init__(self, run: str, source: str) -> None:
        self._run, self._source = run, source
        self._begin()

    def _begin(self) -> None:
        self._kinds: dict[Any, int] = {}
        self._records: list[Record] = []
        self._once: dict[int, str] = {}
        self._columns: _Columns = ([], [], [], [], [])

    def __len__(self) -> int:
        """Return the number of records that are not yet in a pack."""
        return len(self._columns[0])

    def add(self, parser: str, line: Line, hits: Sequence[Hit]) -> None:
        """Add the measurements that a parser has found in a line."""
        number, of_line, node = line.number, line.rank, line.node
        kinds, lines, values, steps, ranks = self._columns
        for hit in hits:
            if hit.once:
                self._once[len(kinds)] = hit.once
            kinds.append(self._kind(parser, hit.node or node, hit))
            lines.append(number)
            values.append(hit.value)
            steps.append(hit.step)
            ranks.append(of_line if hit.rank == OF_LINE else hit.rank)

    def taken(self) -> Pack:
        """Return the records that were added since the last call."""
        pack = Pack(self._records, *self._columns, self._once)
        self._begin()
        return pack

    def _kind(self, parser: str, node: str | None, hit: Hit) -> int:
        """Return the number of a hit's kind."""
        # fmt: off
        common = (
            parser, node, hit.metric, hit.variant, hit.scope, hit.unit, hit.steps, hit.message_size,
        )
        # fmt: on
        number = self._kinds.get(common)
        if number is None:
            number = self._kinds[common] = len(self._records)
            kind = Record(
                run=self._run,
                source=self._source,
                line=0,
                parser=parser,
                metric=hit.metric,
                value=0.0,
                unit=hit.unit or UNITS[hit.metric],
                scope=hit.scope,
                node=node,
                steps=hit.steps,
                message_size=hit.message_size,
                variant=hit.variant,
            )
            self._records.append(kind)
        return number


_decode = msgspec.msgpack.Decoder(Pack).decode


def pressed(pack: Pack) -> bytes:
    """Return a pack as compressed bytes."""
    return zstandard.compress(msgspec.msgpack.encode(pack), _LEVEL)


def unpressed(content: bytes) -> Pack:
    """Return the pack of compressed bytes."""
    return _decode(zstandard.decompress(content))


# Statistics of reading logs: formats, damaged lines and errors.

_WIDTH = 120


class LineSample(msgspec.Struct):
    """A kind of line: the position of the first one, and the number of lines."""

    source: str
    line: int
    text: str
    lines: int = 1


class ParseStats(msgspec.Struct):
    """Counts, while logs are read.

    `known`: lines that each parser read; `nearly`: lines with a parser's literal that no parser
    could read. `damaged`: truncated lines of each source. `failed`: the reason why a source was not
    read. `refused`: the impossible values by run, metric and reason (`value_checks`). `slow`: the
    users' patterns that took too long and were left out, and the line at which they did.
    """

    known: dict[str, LineSample] = msgspec.field(default_factory=dict)
    nearly: dict[str, LineSample] = msgspec.field(default_factory=dict)
    damaged: dict[str, int] = msgspec.field(default_factory=Counter)
    failed: dict[str, str] = msgspec.field(default_factory=dict)
    refused: dict[str, LineSample] = msgspec.field(default_factory=dict)
    slow: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def lines(self) -> int:
        """The lines that contain a literal."""
        kinds = (*self.known.values(), *self.nearly.values())
        return sum(seen.lines for seen in kinds) + sum(self.damaged.values())

    def add(self, other: ParseStats) -> None:
        """Add the counts of another log."""
        for kinds in ("known", "nearly", "refused"):
            mine: dict[str, LineSample] = getattr(self, kinds)
            for name, seen in getattr(other, kinds).items():
                if name in mine:
                    mine[name].lines += seen.lines
                else:
                    mine[name] = copy.copy(seen)
        for source, lines in other.damaged.items():
            self.damaged[source] = self.damaged.get(source, 0) + lines
        self.failed |= other.failed
        self.slow = {**other.slow, **self.slow}

    def refusals(self) -> Iterator[str]:
        """Yield a sentence for each kind of value that was refused, and each slow pattern."""
        for name, place in self.slow.items():
            yield f"{name} takes too long, and is not used from {place} on"
        for name, seen in self.refused.items():
            values = f"{seen.lines} value{'s' * (seen.lines != 1)}"
            yield f"{name}: {values} refused, the first {seen.text} ({seen.source}:{seen.line})"


def count(kinds: dict[str, LineSample], name: str, source: str, line: Line) -> None:
    """Count one line of a kind; the first one is kept."""
    seen = kinds.get(name)
    if seen is None:
        kinds[name] = LineSample(source, line.number, line.text[:_WIDTH])
    else:
        seen.lines += 1


# Lines -> the measurements that parsers find in them; parsers by name.


def stated(parser: LogParser) -> dict[str, Scope]:
    """Return the metrics in the sample of a new parser, and their scopes."""
    lines = dispatch(io.BytesIO(parser.sample.encode()), [parser])
    hits = [hit for line, _ in lines for hit in parser.read(line)]
    return {hit.metric: hit.scope for hit in hits if isinstance(hit, Hit)}


def hits_in(
    lines: Iterable[tuple[Line, Sequence[int]]],
    parsers: Mapping[str, LogParser],
    source: str,
    census: ParseStats,
) -> Iterator[tuple[str, Line, Sequence[Hit]]]:
    """Yield the hits of each line, from the first of its parsers that can read it."""
    names, reads = tuple(parsers), [parser.read for parser in parsers.values()]
    for line, asked in lines:
        damaged, reader = 0, asked[0]
        hits: list[Hit] = []
        for number in asked:
            found = list(reads[number](line))
            if not found:
                continue
            hits = [hit for hit in found if type(hit) is Hit]
            if hits:
                damaged, reader = len(found) - len(hits), number
                count(census.known, names[number], source, line)
                break
            # A later parser may read the whole line.
            damaged = damaged or len(found)
        else:
            for number in asked:
                count(census.nearly, names[number], source, line)
        if may_be_no_number(line.raw):
            hits += not_finite(line, hits)
        if hits:
            yield names[reader], line, hits
        if damaged:
            census.damaged[source] = census.damaged.get(source, 0) + damaged


# A line whose training loss is NaN or infinite -> the measurement `not_finite`.
#
# A loss that is not finite is not a measurement of `loss`. Without `not_finite`, the last finite
# loss before it would look like the end of the training.

_NO_NUMBER = re.compile(rb"oss[^\w|,;]{1,8}[-+]?(?:nan|NaN|NAN|inf|Inf|INF|null)")
may_be_no_number = _NO_NUMBER.search
_OTHER_LOSS = re.compile(rb"(?:val|test)\w{0,12}[ _/.-]{0,3}l$", re.IGNORECASE)
_BEFORE = 32


def not_finite(line: Line, hits: Sequence[Hit]) -> Iterator[Hit]:
    """Yield that the loss is not finite, unless the line has a finite one, too."""
    raw, found = line.raw, _NO_NUMBER.search(line.raw)
    if found is None or any(hit.metric == "loss" and not hit.variant for hit in hits):
        return
    # Events of `@hpct` have null for NaN; elsewhere null is a value that was not measured.
    is_stated = b"@hpct" in raw or not found[0].endswith(b"null")
    # The loss of a validation without labels may be NaN.
    before = raw[max(0, found.start() - _BEFORE) : found.start()]
    if is_stated and not _OTHER_LOSS.search(before):
        yield Hit("not_finite", 1.0, "per_rank", variant="loss")


# One log file -> its records, and the position up to which it was read.


class Log(NamedTuple):
    """A log file, its run, and its name in records."""

    run: str
    path: Path
    source: str


class Wanted(NamedTuple):
    """The parsers to use, and the user's patterns.

    `usual`: all parsers and the settings of the study, without options of one command.
    `guessing`: the parser of logs in which these find no measurement.
    """

    parsers: tuple[str, ...]
    patterns: tuple[LogPattern, ...] = ()
    usual: bool = True
    guessing: str = ""

    def with_patterns(self, patterns: Sequence[LogPattern]) -> Wanted:
        """Return the same with the patterns of a study, unless one format was named."""
        if len(self.parsers) == 1:
            return self
        return self._replace(patterns=(*self.patterns, *patterns))


Parsers = Mapping[str, LogParser]


def parsers_of(wanted: Wanted) -> dict[str, LogParser]:
    """Return a new parser of each kind; those of user patterns come first."""
    own = {"pattern": UserPatterns(wanted.patterns)} if wanted.patterns else {}
    return own | {name: maker(name)() for name in wanted.parsers}


def read(log: Log, parsers: Parsers, census: ParseStats, mark: Mark) -> Iterator[Pack]:
    """Yield the records of a file from `mark` on.

    A file that cannot be read is noted in `census`; the records before the damage are kept. The
    records of a live pipe are yielded line by line.
    """
    before, packer, live = census.lines, Packer(log.run, log.source), is_live(log.path)
    try:
        with open_log(log.path, mark.offset) as stream:
            readers = tuple(parsers.values())
            lines = dispatch(stream, readers, rank_of(log.path), mark)
            for name, line, hits in hits_in(lines, parsers, log.source, census):
                packer.add(name, line, hits)
                if live or len(packer) >= LOT:
                    yield packer.taken()
            # The patterns of the user that were left out.
            for parser in readers:
                for regex, number in getattr(parser, "too_slow", {}).items():
                    census.slow.setdefault(f"the pattern {regex!r}", f"{log.source}:{number}")
        if census.lines == before and (kind := unreadable_kind(log.path)):
            census.failed[log.source] = readable(f"{log.path}: {kind}")
    except LogParseError as error:
        census.failed[log.source] = readable(error.message)
    if len(packer):
        yield packer.taken()


# Logs of a run in which no parser found a measurement -> what the generic parser reads in them.

GUESSING = "generic"
# What a log may contain whatever its format: sizes, conditions, bars of an unknown loop.
_NO_FORMAT = frozenset({
    "iteration_time", "not_finite", "condition", "seed", "threads", "epoch", "world_size",
    "global_batch_size", "tokens_per_step", "batch_size", "sequence_length", "parameters",
})  # fmt: skip


def with_scope(kind: Record, scope: Scope) -> Record:
    """Return a rate of unknown scope that was guessed with this scope; all others as they are."""
    is_guessed = kind.parser == GUESSING and kind.scope == "unknown"
    if is_guessed and kind.metric in ("samples_per_second", "tokens_per_second"):
        return msgspec.structs.replace(kind, scope=scope)
    return kind


def read_run(logs: Sequence[Log], wanted: Wanted, census: ParseStats) -> Iterator[Pack]:
    """Yield what the logs of a run state; if nothing was measured, they are read again.

    Then the generic parser reads them. A pipe cannot be read again. If the run is known to have
    one rank, a rate of unknown scope is that of the job.
    """
    metrics, ranks = set[str](), set[float]()
    for log in logs:
        for pack in read(log, parsers_of(wanted), census, Mark()):
            metrics |= {kind.metric for kind in pack.kinds}
            sizes = {n for n, kind in enumerate(pack.kinds) if kind.metric == "world_size"}
            # Two numbers are as good as more.
            if sizes and len(ranks) < 2:
                stated = zip(pack.kind, pack.value, strict=True)
                ranks |= {value for kind, value in stated if kind in sizes}
            yield pack
    if not wanted.guessing or metrics - _NO_FORMAT:
        return
    guessing, stats = Wanted((wanted.guessing,)), ParseStats()
    for log in logs:
        if log.source in census.failed or is_live(log.path):
            continue
        for pack in read(log, parsers_of(guessing), stats, Mark()):
            if ranks == {1.0}:
                pack.kinds = [with_scope(kind, "global") for kind in pack.kinds]
            # Values that are not finite were counted before.
            counted = {"not_finite"} & metrics
            places = enumerate(pack.kinds[kind].metric for kind in pack.kind)
            yield pack.without({place for place, metric in places if metric in counted})
    census.add(ParseStats(known=stats.known))


def is_live(path: Path) -> bool:
    """Whether a path is a pipe, a socket or a terminal, whose content may still arrive."""
    try:
        kind = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or stat.S_ISCHR(kind)
