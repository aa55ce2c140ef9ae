"""Many log files -> their readings in order, with two processes if that is faster."""

from __future__ import annotations

import logging
import math
import os
import re
import sys
from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from hpc_train.base import registry
from hpc_train.base.errors import LogParseError
from hpc_train.base.regex import TimedPattern
from hpc_train.jobs.log_selection import LogPattern
from hpc_train.logs.line_dispatch import Mark
from hpc_train.logs.log_file import log_files, readable
from hpc_train.logs.read_log import (
    GUESSING,
    LineSample,
    Log,
    MeasuredRun,
    ParseStats,
    Reading,
    Wanted,
    is_live,
    lots,
    maker,
    parsers_of,
    read,
    unpressed,
    whole,
)
from hpc_train.logs.record import LOT, Pack, Record, joined_packs
from hpc_train.logs.record_index import Index

if TYPE_CHECKING:
    from concurrent.futures import Future

_PROCESSES = 2
# Fewer bytes than this are read before a second process has started.
_WORTH = 64_000_000
_LOT = 16_000_000
_WAITING = 2 * _PROCESSES

_decode = msgspec.msgpack.Decoder(list[Reading]).decode


def worth_it(sizes: Sequence[int]) -> bool:
    """Whether two processes would read files of these sizes [B] faster, and may be started."""
    if sum(sizes) - max(sizes, default=0) < _WORTH // 2 or sum(sizes) < _WORTH:
        return False
    # A forked process has no other threads, but keeps the locks that these threads held.
    tasks = Path("/proc/self/task")
    if not tasks.is_dir() or len(list(tasks.iterdir())) > 1:
        return False
    return len(os.sched_getaffinity(0)) >= _PROCESSES


def spread(logs: Sequence[Log], sizes: Sequence[int], wanted: Wanted) -> Iterator[Reading]:
    """Yield the reading of each file, in order."""
    # Imported here: these are 25 modules, and few reports need a second process.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(_PROCESSES, mp_context=context) as pool:
        waiting: deque[Future[bytes]] = deque()
        for lot in _lots(logs, sizes):
            waiting.append(pool.submit(_read_all, lot, wanted))
            if len(waiting) > _WAITING:
                yield from _decode(waiting.popleft().result())
        while waiting:
            yield from _decode(waiting.popleft().result())


def _read_all(logs: Sequence[Log], wanted: Wanted) -> bytes:
    return msgspec.msgpack.encode([whole(log, wanted) for log in logs])


def _lots(logs: Sequence[Log], sizes: Sequence[int]) -> Iterator[list[Log]]:
    lot: list[Log] = []
    held = 0
    for log, size in zip(logs, sizes, strict=True):
        lot.append(log)
        held += size
        if held >= _LOT:
            yield lot
            lot, held = [], 0
    if lot:
        yield lot


# Logs -> Record: every measurement in the logs, each with its file and line.

PREFIX_GROUPS = frozenset({"rank", "local", "host"})
_PREFIX_HINT = r"for example (?P<host>\w+)-gpu(?P<local>\d+)> ; groups: rank, local, host"
_log = logging.getLogger(__name__)


def collect(
    run: str,
    paths: Sequence[Path],
    parser: str | Wanted = "auto",
    *,
    root: Path | None = None,
    census: ParseStats | None = None,
) -> Iterator[Record]:
    """Yield the records of log files, ordered by file name and line.

    A folder in `paths` selects all logs below it, plain or compressed. `auto` tries every parser
    that has a literal in a line, in the order of the registry: the first one that can read the
    line is used. If nothing is measured in the logs of a run, `generic` reads them again. `source`
    is written relative to `root`. Files that cannot be read, lines that are truncated or
    overwritten, and impossible values (`value_checks`) are skipped with a warning, and counted in
    `census`.

    Raises:
        UnknownNameError: no such parser (at once).
        LogParseError: none of the files can be read.
    """
    logs = logs_of(run, paths, root)
    look = wanted(parser) if isinstance(parser, str) else parser
    return records_of(logs, look, ParseStats() if census is None else census)


def wanted(parser: str, prefix: str = "", patterns: Sequence[LogPattern] = ()) -> Wanted:
    """Return what to search for: one parser or, with `auto`, all, and a prefix of the site.

    User patterns are tried first; `pattern` selects these alone.

    Raises:
        UnknownNameError: no such parser.
        LogParseError: the prefix is invalid, or has other groups.
    """
    _check_prefix(prefix)
    names = (
        tuple(n for n in registry.names("parsers") if n != GUESSING)
        if parser == "auto"
        else (parser,)
    )
    if patterns and parser == "pattern":
        names = ()
    elif parser != "auto":
        maker(parser)
    usual = parser == "auto" and not prefix and not patterns
    guessing = GUESSING if parser == "auto" else ""
    return Wanted(names, prefix, tuple(patterns), usual, guessing)


def _check_prefix(pattern: str) -> None:
    if not pattern:
        return
    try:
        groups = set(TimedPattern(pattern).groupindex)
    except (re.error, OverflowError, RecursionError) as failure:
        raise LogParseError(f"--prefix: {failure}", _PREFIX_HINT) from None
    if groups - PREFIX_GROUPS:
        unknown = ", ".join(sorted(groups - PREFIX_GROUPS))
        raise LogParseError(f"--prefix: unknown group {unknown}", _PREFIX_HINT)


def logs_of(run: str, paths: Sequence[Path], root: Path | None = None) -> list[Log]:
    """Return the log files of one run."""
    return [Log(run, path, _source(path, root)) for path in log_files(paths)]


def records_of(
    logs: Sequence[Log], wanted: Wanted, census: ParseStats, index: Index | None = None
) -> Iterator[Record]:
    """Yield the records of logs as `packs_in` does, one by one."""
    for pack in packs_in(logs, wanted, census, index):
        yield from pack.records()


def packs_in(
    logs: Sequence[Log], wanted: Wanted, census: ParseStats, index: Index | None = None
) -> Iterator[Pack]:
    """Yield the records of logs, in their order; an `index` has those of files read before.

    Raises:
        LogParseError: none of the files can be read.
    """
    yield from each_once(logs, wanted, census, index)
    for log in logs:
        _warn(log, census)


def each_once(
    logs: Sequence[Log], wanted: Wanted, census: ParseStats, index: Index | None
) -> Iterator[Pack]:
    """Yield records as `packs_in` does; damage is counted, without warnings."""
    packs = _once(logs, wanted, census, index)
    if any(is_live(log.path) for log in logs):
        # A value is compared with values that arrived together.
        packs = (pack for lot in lots(packs, LOT) for pack in joined_packs(lot))
    yield from possible(packs, census)


def _once(
    logs: Sequence[Log], wanted: Wanted, census: ParseStats, index: Index | None
) -> Iterator[Pack]:
    """Yield each measurement once, however many ranks printed it."""
    once: set[tuple[str, str, str, str]] = set()
    empty = True
    for pack in _all(logs, wanted, census, index):
        again = _again(pack, once)
        empty = empty and len(again) == len(pack)
        yield pack.without(again) if again else pack
    if empty and logs and len(census.failed) >= len(logs):
        more = f"; {len(logs) - 1} more cannot be read either" if len(logs) > 1 else ""
        raise LogParseError(next(iter(census.failed.values())) + more)


def _again(pack: Pack, once: set[tuple[str, str, str, str]]) -> set[int]:
    """Return the positions of repeated measurements; add the new ones to `once`."""
    again = set()
    for place, key in pack.once.items():
        kind = pack.kinds[pack.kind[place]]
        full = (kind.run, kind.parser, kind.metric, key)
        if full in once:
            again.add(place)
        once.add(full)
    return again


def _all(
    logs: Sequence[Log], wanted: Wanted, census: ParseStats, index: Index | None
) -> Iterator[Pack]:
    new = {log for log in logs if index is None or not index.knows(log)}
    unread = [log for log in logs if log in new]
    sizes = [log.path.stat().st_size if log.path.is_file() else 0 for log in unread]
    together = spread(unread, sizes, wanted) if worth_it(sizes) else None
    for _, own in groupby(logs, lambda log: log.run):
        run = MeasuredRun(tuple(own), wanted)
        for log in run.logs:
            reading = next(together) if together is not None and log in new else None
            yield from run.noted(_of_log(log, wanted, census, index, reading))
        yield from run.guessed(census)


def _of_log(
    log: Log, wanted: Wanted, census: ParseStats, index: Index | None, reading: Reading | None
) -> Iterator[Pack]:
    if index is not None:
        yield from index.packs(log, census, reading)
    elif reading is not None:
        census.add(reading.census)
        yield from map(unpressed, reading.packs)
    else:
        yield from read(log, parsers_of(wanted), wanted.prefix, census, Mark())


def _warn(log: Log, census: ParseStats) -> None:
    if log.source in census.failed:
        _log.warning("%s", census.failed[log.source])
    if number := census.damaged.get(log.source):
        are = "line is" if number == 1 else "lines are"
        where = log.source if log.source.endswith(log.run) else f"{log.run}: {log.source}"
        _log.warning("%s: %d %s cut, written over or without a number", where, number, are)


def _source(path: Path, root: Path | None) -> str:
    if root is not None and path.is_relative_to(root):
        path = path.relative_to(root)
    return readable(path.as_posix())


# Records -> those with possible values; the others are refused and counted.
#
# The rules for every parser, including user patterns and plug-ins:
#
# - a fraction (`accuracy`, `mfu`) is from 0 to 1;
# - a time of a step, an epoch or a training is above 0, and so is a rate of samples or tokens; any
#   other time (s, us) or rate (.../s) is not negative; all of them are finite;
# - memory, power and energy are from 0 to 1e100;
# - a rate is at most 1,000 times the median of its neighbours: up to five values before it and five
#   after it in the same file, of the same parser, metric, variant, unit, scope, rank and message
#   size, at least three of which are above 0. A step time counts as a rate of steps. In a live
# pipe, only values that arrived in the same batch come after it.
#
# Only rates that are too high are compared: a first step or a stall may take 1,000 times as long as
# the others.

FRACTIONS = frozenset({"accuracy", "mfu"})
_POSITIVE = frozenset(
    {
        *("step_time", "epoch_time", "time_to_train", "first_step_time", "iteration_time"),
        *("samples_per_second", "tokens_per_second", "latency"),
    }
)
_TIMES = frozenset({"s", "us"})
_AMOUNTS = frozenset({"memory", "power", "energy"})
_LEAST, _MOST = 5e-324, sys.float_info.max
_FACTOR = 1000.0
_ASIDE = 5
_LEAST_NEIGHBOURS = 3
_series = attrgetter("metric", "parser", "variant", "unit", "scope", "message_size")
_Key = tuple[Any, int | None]
"""Key of a series of neighbouring values: the fields of `_series`, and the rank."""


class _Check(NamedTuple):
    """The range of possible values, the error for others, and whether the metric is a rate.

    Most metrics have no limits.
    """

    low: float
    high: float
    wrong: str
    is_rate: bool


_ANY = _Check(-math.inf, math.inf, "", False)


def possible(packs: Iterable[Pack], census: ParseStats) -> Iterator[Pack]:
    """Yield the records whose value is possible, in their order; `census` counts the others."""
    for _, of_file in groupby(packs, _file):
        before: dict[_Key, list[float]] = {}
        for pack in of_file:
            wrong = _out_of_range(pack)
            wrong |= dict.fromkeys(_far_above(pack, wrong, before), "is 1,000 times its neighbours")
            for place in sorted(wrong):
                _refuse(pack, place, wrong[place], census)
            sound = pack.without(wrong) if wrong else pack
            if len(sound):
                yield sound


def _file(pack: Pack) -> tuple[str, str]:
    return pack.kinds[0].run, pack.kinds[0].source


def _out_of_range(pack: Pack) -> dict[int, str]:
    """Return the positions of impossible values, each with the error."""
    checks = [_check(kind.metric, kind.unit) for kind in pack.kinds]
    bounds = [(check.low, check.high) for check in checks]
    cells = enumerate(zip(pack.kind, pack.value, strict=True))
    outside = [
        (place, checks[kind].wrong)
        for place, (kind, value) in cells
        if not bounds[kind][0] <= value <= bounds[kind][1]
    ]
    return {place: wrong for place, wrong in outside if wrong}


def _far_above(pack: Pack, wrong: Container[int], before: dict[_Key, list[float]]) -> Iterator[int]:
    """Yield the positions of rates far above their neighbours; `before` has the last of each."""
    for key, places in _rates(pack, wrong).items():
        last = before.get(key, [])
        values = [*last, *[pack.value[place] for place in places]]
        rate = (lambda took: 1 / max(took, 1 / _MOST)) if key[0][0] == "step_time" else float
        ends = [rate(min(values)), rate(max(values))]
        if max(ends) > _FACTOR * min(ends):
            high = _too_high([rate(value) for value in values], len(last))
            yield from (places[at - len(last)] for at in high)
            values = [value for at, value in enumerate(values) if at not in high]
        before[key] = values[-_ASIDE:]


def _rates(pack: Pack, wrong: Container[int]) -> dict[_Key, list[int]]:
    """Return the positions of the rates of each series."""
    is_rate = [_check(kind.metric, kind.unit).is_rate for kind in pack.kinds]
    # Several kinds may form one series, and numbers are compared faster than tuples.
    numbers: dict[Any, int] = {}
    series = [numbers.setdefault(_series(kind), len(numbers)) for kind in pack.kinds]
    found: dict[tuple[int, int | None], list[int]] = {}
    for place, (kind, rank) in enumerate(zip(pack.kind, pack.rank, strict=True)):
        if is_rate[kind] and place not in wrong:
            found.setdefault((series[kind], rank), []).append(place)
    names = tuple(numbers)
    return {(names[number], rank): places for (number, rank), places in found.items()}


@lru_cache(maxsize=1024)
def _check(metric: str, unit: str) -> _Check:
    """Return the check of a metric."""
    is_rate = unit.endswith("/s") or metric == "step_time"
    if metric in FRACTIONS:
        return _Check(0.0, 1.0, "is not from 0 to 1", False)
    if metric in _AMOUNTS:
        return _Check(0.0, 1e100, "is not from 0 to 1e100", False)
    if metric in _POSITIVE:
        return _Check(_LEAST, _MOST, "is not above 0 and finite", is_rate)
    if unit in _TIMES or is_rate:
        return _Check(0.0, _MOST, "is negative or not finite", is_rate)
    return _ANY


def _too_high(values: Sequence[float], first: int) -> set[int]:
    """Return the positions, from `first` on, of values far above their neighbours."""
    found = set()
    for at in range(first, len(values)):
        beside = (*values[max(0, at - _ASIDE) : at], *values[at + 1 : at + 1 + _ASIDE])
        beside = tuple(value for value in beside if value > 0)
        if len(beside) >= _LEAST_NEIGHBOURS and values[at] > _FACTOR * median(beside):
            found.add(at)
    return found


def _refuse(pack: Pack, place: int, wrong: str, census: ParseStats) -> None:
    kind, value = pack.kinds[pack.kind[place]], pack.value[place]
    name = f"{kind.run}: {kind.metric} {wrong}"
    seen = census.refused.get(name)
    if seen is None:
        census.refused[name] = LineSample(kind.source, pack.line[place], f"{value:g}")
    else:
        seen.lines += 1


_WHY = (
    "every process of nccl-tests ran a separate test, nothing was measured between them; "
    "build it with MPI=1 and start it with `srun --mpi=pmix` or mpirun"
)


def is_apart(record: Record) -> bool:
    """Whether a record shows that a process of a benchmark was connected to no other."""
    return record.metric == "world_size" and record.variant == "apart"


def apart_warnings(records: Iterable[Record]) -> tuple[str, ...]:
    """Return a warning that names the first run and its place, if there is one."""
    first: dict[str, Record] = {}
    for record in records:
        if is_apart(record):
            first.setdefault(record.run, record)
    if not first:
        return ()
    run, record = next(iter(first.items()))
    more = f" and {len(first) - 1} more" if len(first) > 1 else ""
    return (f"{run}{more}: {_WHY} ({record.source}:{record.line})",)
