"""Words of a command line -> logs that hpctrain did not make, each with the run that it is of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from hpc_train.errors import LogParseError
from hpc_train.records.collect import logs_of
from hpc_train.records.log_names import NAMES, log_files, rank_of
from hpc_train.records.reading import Log

_SHOWN = 8


def expanded(word: str) -> list[Path]:
    """Return the path that a word names, or those that a pattern in quotes matches."""
    if Path(word).exists():
        return [Path(word)]
    pattern = Path(word)
    try:
        return sorted(Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor))))
    except ValueError:
        return []


def foreign_runs(paths: Sequence[Path]) -> dict[str, list[Log]]:
    """Return the log files of each run: a file is one, and so are the rank files of a folder.

    Raises:
        LogParseError: a folder without logs.
    """
    runs = _grouped([file for path in dict.fromkeys(paths) for file in _files(path)])
    names = Counter(path.name for path in runs)
    found = {}
    for path, files in runs.items():
        # Two logs of one name in different folders are two runs.
        run = path.name if names[path.name] == 1 and path.name else str(path)
        found[run] = logs_of(run, files)
    return found


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = log_files([path])
    if files:
        return files
    there = sorted(entry.name for entry in path.iterdir())
    shown = ", ".join(there[:_SHOWN]) + (", …" if len(there) > _SHOWN else "")
    raise LogParseError(
        f"{path}: no log files in this folder; it holds {shown or 'nothing'}",
        f"logs are {NAMES}; name other files one by one",
    )


def _grouped(files: Sequence[Path]) -> dict[Path, list[Path]]:
    """Put the rank files of each folder together, under the folder's path."""
    ranks = Counter(file.parent for file in files if rank_of(file) is not None)
    runs: dict[Path, list[Path]] = {}
    for file in dict.fromkeys(files):
        together = rank_of(file) is not None and ranks[file.parent] > 1
        runs.setdefault(file.parent if together else file, []).append(file)
    return runs
