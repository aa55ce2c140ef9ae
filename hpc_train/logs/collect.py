"""Logs -> Record: every measurement in the logs, each with its file and line."""

from __future__ import annotations

import logging
import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from hpc_train.base import registry
from hpc_train.base.errors import LogParseError
from hpc_train.base.regex import TimedPattern
from hpc_train.jobs.log_selection import LogPattern
from hpc_train.logs.formats.formats import maker, own_formats
from hpc_train.logs.log_file import log_files, readable
from hpc_train.logs.read_log import GUESSING, LineSample, Log, ParseStats, Wanted, read_run
from hpc_train.logs.record import Pack, Record

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
    packs = packs_in(logs, look, ParseStats() if census is None else census)
    return (record for pack in packs for record in pack.records())


def wanted(parser: str, prefix: str = "", patterns: Sequence[LogPattern] = ()) -> Wanted:
    """Return what to search for: one parser or, with `auto`, all, and a prefix of the site.

    User patterns are tried first; `pattern` selects these alone.

    Raises:
        UnknownNameError: no such parser.
        LogParseError: the prefix is invalid, or has other groups.
    """
    try:
        groups = set(TimedPattern(prefix).groupindex) if prefix else set[str]()
    except (re.error, OverflowError, RecursionError) as failure:
        raise LogParseError(f"--prefix: {failure}", _PREFIX_HINT) from None
    if unknown := sorted(groups - PREFIX_GROUPS):
        raise LogParseError(f"--prefix: unknown group {', '.join(unknown)}", _PREFIX_HINT)
    names = (
        tuple(n for n in (*own_formats(), *registry.names("parsers")) if n != GUESSING)
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


def logs_of(run: str, paths: Sequence[Path], root: Path | None = None) -> list[Log]:
    """Return the log files of one run."""
    logs = []
    for path in log_files(paths):
        inside = root is not None and path.is_relative_to(root)
        name = path.relative_to(root) if root is not None and inside else path
        logs.append(Log(run, path, readable(name.as_posix())))
    return logs


def packs_in(logs: Sequence[Log], wanted: Wanted, census: ParseStats) -> Iterator[Pack]:
    """Yield the records of logs, in their order.

    Each measurement is yielded once, however many ranks printed it.

    Raises:
        LogParseError: none of the files can be read.
    """
    once: set[tuple[str, str, str, str, float]] = set()
    empty = True
    for _, own in groupby(logs, lambda log: log.run):
        for pack in read_run(tuple(own), wanted, census):
            again = _again(pack, once)
            empty = empty and len(again) == len(pack)
            yield from possible([pack.without(again) if again else pack], census)
    if empty and logs and len(census.failed) >= len(logs):
        more = f"; {len(logs) - 1} more cannot be read either" if len(logs) > 1 else ""
        raise LogParseError(next(iter(census.failed.values())) + more)
    for log in logs:
        _warn(log, census)


def _again(pack: Pack, once: set[tuple[str, str, str, str, float]]) -> set[int]:
    """Return the positions of repeated measurements; add the new ones to `once`.

    A second job in a log may have another size.
    """
    again = set()
    for place, key in pack.once.items():
        kind = pack.kinds[pack.kind[place]]
        size = pack.value[place] if kind.metric == "world_size" else 0.0
        full = (kind.run, kind.parser, kind.metric, key, size)
        if full in once:
            again.add(place)
        once.add(full)
    return again


def _warn(log: Log, census: ParseStats) -> None:
    if log.source in census.failed:
        _log.warning("%s", census.failed[log.source])
    if number := census.damaged.get(log.source):
        are = "line is" if number == 1 else "lines are"
        where = log.source if log.source.endswith(log.run) else f"{log.run}: {log.source}"
        _log.warning("%s: %d %s cut, written over or without a number", where, number, are)


# Records -> those with possible values; the others are refused and counted.
#
# The rules for every parser, including user patterns and plug-ins:
#
# - a fraction (`accuracy`, `mfu`) is from 0 to 1;
# - a time of a step, an epoch or a training is above 0, and so is a rate of samples or tokens; any
#   other time (s, us) or rate (.../s) is not negative; all of them are finite;
# - memory, power and energy are from 0 to 1e100.

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


def possible(packs: Iterable[Pack], census: ParseStats) -> Iterator[Pack]:
    """Yield the records whose value is possible, in their order; `census` counts the others."""
    for pack in packs:
        limits = [_limits(kind.metric, kind.unit) for kind in pack.kinds]
        bounds = [(low, high) for low, high, _ in limits]
        cells = enumerate(zip(pack.kind, pack.value, strict=True))
        wrong = [
            place
            for place, (kind, value) in cells
            if not bounds[kind][0] <= value <= bounds[kind][1] and limits[kind][2]
        ]
        for place in wrong:
            kind, value = pack.kinds[pack.kind[place]], f"{pack.value[place]:g}"
            name = f"{kind.run}: {kind.metric} {limits[pack.kind[place]][2]}"
            seen = LineSample(kind.source, pack.line[place], value, 0)
            census.refused.setdefault(name, seen).lines += 1
        sound = pack.without(set(wrong)) if wrong else pack
        if len(sound):
            yield sound


@lru_cache(maxsize=1024)
def _limits(metric: str, unit: str) -> tuple[float, float, str]:
    """Return the range of possible values, and the error for others; most have no limits."""
    if metric in FRACTIONS:
        return 0.0, 1.0, "is not from 0 to 1"
    if metric in _AMOUNTS:
        return 0.0, 1e100, "is not from 0 to 1e100"
    if metric in _POSITIVE:
        return _LEAST, _MOST, "is not above 0 and finite"
    if unit in _TIMES or unit.endswith("/s"):
        return 0.0, _MOST, "is negative or not finite"
    return -math.inf, math.inf, ""


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
