"""Arguments of the command line -> foreign logs, grouped by run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from hpc_train.base.errors import LogParseError, nearest
from hpc_train.logs.collect import logs_of
from hpc_train.logs.event_file import is_event_file
from hpc_train.logs.log_file import NAMES, event_files, log_files, rank_of, readable
from hpc_train.logs.pattern_suggestions import suggested_for
from hpc_train.logs.read_log import Log, ParseStats

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
