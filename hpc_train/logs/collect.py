"""Logs of the command line, by run -> Record: every measurement, each with its file and line."""

import logging
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, islice
from pathlib import Path

from hpc_train.base import registry
from hpc_train.base.errors import LogParseError, nearest
from hpc_train.jobs.log_selection import LogPattern
from hpc_train.logs.formats.formats import maker, own_formats
from hpc_train.logs.log_file import NAMES, event_files, is_event_file, log_files, rank_of, readable
from hpc_train.logs.read_log import GUESSING, LineSample, Log, ParseStats, Wanted, read_run
from hpc_train.logs.record import Pack, Record

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


def wanted(parser: str, patterns: Sequence[LogPattern] = ()) -> Wanted:
    """Return what to search for: one parser or, with `auto`, all.

    User patterns are tried first; `pattern` selects these alone.

    Raises:
        UnknownNameError: no such parser.
    """
    names = (
        tuple(n for n in (*own_formats(), *registry.names("parsers")) if n != GUESSING)
        if parser == "auto"
        else (parser,)
    )
    if patterns and parser == "pattern":
        names = ()
    elif parser != "auto":
        maker(parser)
    usual = parser == "auto" and not patterns
    guessing = GUESSING if parser == "auto" else ""
    return Wanted(names, tuple(patterns), usual, guessing)


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
            sound = possible(pack.without(again) if again else pack, census)
            if len(sound):
                yield sound
    if empty and logs and len(census.failed) >= len(logs):
        more = f"; {len(logs) - 1} more cannot be read either" if len(logs) > 1 else ""
        raise LogParseError(next(iter(census.failed.values())) + more)
    for log in logs:
        if log.source in census.failed:
            _log.warning("%s", census.failed[log.source])
        if number := census.damaged.get(log.source):
            are = "line is" if number == 1 else "lines are"
            where = log.source if log.source.endswith(log.run) else f"{log.run}: {log.source}"
            _log.warning("%s: %d %s truncated, overwritten or without a number", where, number, are)


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


def possible(pack: Pack, census: ParseStats) -> Pack:
    """Return the records whose value is possible; `census` counts the others."""
    limits = [_limits(kind.metric, kind.unit) for kind in pack.kinds]
    cells = enumerate(zip(pack.kind, pack.value, strict=True))
    wrong = {
        place
        for place, (kind, value) in cells
        if not limits[kind][0] <= value <= limits[kind][1] and limits[kind][2]
    }
    for place in sorted(wrong):
        kind, value = pack.kinds[pack.kind[place]], f"{pack.value[place]:g}"
        name = f"{kind.run}: {kind.metric} {limits[pack.kind[place]][2]}"
        seen = LineSample(kind.source, pack.line[place], value, 0)
        census.refused.setdefault(name, seen).lines += 1
    return pack.without(wrong) if wrong else pack


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
    """Return a warning that names the first run whose processes were not connected, if any."""
    first: dict[str, Record] = {}
    for record in records:
        if is_apart(record):
            first.setdefault(record.run, record)
    if not first:
        return ()
    run, record = next(iter(first.items()))
    more = f" and {len(first) - 1} more" if len(first) > 1 else ""
    return (f"{run}{more}: {_WHY} ({record.source}:{record.line})",)


_SHOWN = 8
_NEAREST = 3
_STDIN = "/dev/stdin"
_TABLES = (".csv", ".tsv")


def no_such_file(word: str) -> LogParseError | None:
    """Return the error for an argument that can only be a file that does not exist."""
    path = Path(word)
    kind = "folder" if word.endswith("/") else "file"
    if any(letter in word for letter in "*?["):
        return LogParseError(f"{word}: no file matches this pattern", f"ls {path.parent}")
    if not path.suffix and len(path.parts) == 1 and not word.endswith("/"):
        return None
    if not path.parent.is_dir():
        return LogParseError(
            f"{word}: no such {kind}; there is no folder {path.parent}",
            "hpctrain status lists the runs and studies in ./results, or in --results FOLDER",
        )
    there = sorted(entry.name for entry in path.parent.iterdir())
    return LogParseError(
        f"{word}: no such {kind}{nearest(path.name, there)}",
        "hpctrain status lists runs and studies, which have names without a path",
    )


def refuse_empty(paths: Sequence[Path]) -> None:
    """Refuse logs if all of them are empty files.

    Raises:
        LogParseError: all files are empty.
    """
    if paths and all(path.is_file() and path.stat().st_size == 0 for path in paths):
        raise LogParseError(f"{_all(paths)}: empty", "no output yet, or it is in another file")


def nothing(logs: Sequence[Log], census: ParseStats, form: str = "auto") -> LogParseError:
    """Return the error for logs without a measurement, with the nearest format and place."""
    paths = [log.path for log in logs]
    try:
        refuse_empty(paths)
    except LogParseError as empty:
        return empty
    if all(path.suffix.lower() in _TABLES for path in paths):
        return LogParseError(
            f"{_all(paths)}:1: no column of a known time, rate or loss, as in a table of steps",
            "hpctrain report reads a table of jobs, which begins with columns such as "
            "nodes,gpus_per_node,samples_per_second",
        )
    if census.refused:
        return LogParseError("; ".join(islice(census.refusals(), _NEAREST)))
    near = sorted(census.nearly.items(), key=lambda item: -item[1].lines)[:_NEAREST]
    places = "; ".join(f"{name} ({s.source}:{s.line}: {s.text!r})" for name, s in near)
    what = "a known format" if form == "auto" else f"the format {form}"
    hint = "hpctrain collect --list shows the formats, hpctrain help events how to print events"
    if str(paths[0]) == _STDIN:
        hint = f"for a table of results on stdin: hpctrain report - --parser table; {hint}"
    from hpc_train.logs.pattern_suggestions import suggested_for

    if form == "auto" and (found := suggested_for(path for path in paths if path.is_file())):
        hint = f"{found[1][0].words}; {hint}"
    return LogParseError(
        f"{_all(paths)}: no line of {what}" + (f"; nearest: {places}" if places else ""),
        hint if form == "auto" else "without --format, every format is tried",
    )


def _all(paths: Sequence[Path]) -> str:
    return str(paths[0]) + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")


def foreign_runs(paths: Sequence[Path]) -> dict[str, list[Log]]:
    """Return the log files of each run: each file is a run, and so are the rank files of a folder.

    The event files of a folder are also one run.

    Raises:
        LogParseError: a folder without logs.
    """
    files = files_of(paths)
    ranks = Counter(file.parent for file in files if rank_of(file) is not None)
    runs: dict[Path, list[Path]] = {}
    for file in files:
        together = rank_of(file) is not None and ranks[file.parent] > 1
        together = together or (is_event_file(file) and bool(file.parent.name))
        runs.setdefault(file.parent if together else file, []).append(file)
    names = Counter(path.name for path in runs)
    found = {}
    for path, several in runs.items():
        # Two logs with the same name in different folders are two runs.
        run = readable(path.name if names[path.name] == 1 and path.name else str(path))
        found[run] = logs_of(run, several)
    return found


def files_of(paths: Sequence[Path]) -> list[Path]:
    """Return the given log files, and those in given folders.

    Raises:
        LogParseError: a folder without logs.
    """
    found: dict[Path, None] = {}
    for path in paths:
        # A job that writes event files usually prints the same values.
        files = (log_files([path]) or event_files(path)) if path.is_dir() else [path]
        if not files:
            there = sorted(entry.name for entry in path.iterdir())
            shown = ", ".join(there[:_SHOWN]) + (", …" if len(there) > _SHOWN else "")
            raise LogParseError(
                f"{path}: no log files in this folder; it contains {shown or 'nothing'}",
                f"logs are {NAMES}; name other files one by one",
            )
        found.update(dict.fromkeys(files))
    return list(found)
