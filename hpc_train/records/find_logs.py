"""Paths -> log files, the rank in a file name, and the files of each job."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from hpc_train.regularfile import is_folder

# torchrun --log-dir: RUN/attempt_0/3/stderr.log, with a number for each local rank.
_ATTEMPT = re.compile(r"^attempt_\d{1,6}$")
# `job.out` and `job.err`, `job.o4711` and `job.e4711`, `stdout` and `stderr`, also compressed.
_ERRORS = re.compile(r"(?:(?<=\.)err|(?<=\.)stderr|(?<=\.)e(?=\d+(?:\.|$))|^stderr)")
_OUTPUT = {"err": "out", "stderr": "stdout", "e": "o"}
_LOG = re.compile(
    r"(?:\.(?:out|log|err|txt|stdout|stderr|[oe]\d+)(?:\.\d{1,4})?|^std(?:out|err)|metrics\.csv)"
    r"(?:\.(?:gz|xz|zst|bz2))?$"
)
_EVENTS = re.compile("tfevents")
_RANK = re.compile(r"rank[-_.]?(\d{1,7})(?!\d)")
# torchrun: job/attempt_0/3/stdout.log.
_DEEPEST = 5
NAMES = (
    "*.out, *.log, *.err, *.txt, *.o123, stdout, stderr, metrics.csv, plain or compressed; else "
    "*tfevents*"
)


def log_files(paths: Iterable[Path]) -> list[Path]:
    """Return the log files of `paths`, sorted: files as given, and those below a folder.

    Unreadable and hidden folders and links to folders are skipped.
    """
    files: set[Path] = set()
    for path in paths:
        files.update(_below(path, _DEEPEST) if is_folder(path) else [path])
    return sorted(files)


def event_files(folder: Path) -> list[Path]:
    """Return the event files of TensorBoard below a folder, sorted."""
    return sorted(_below(folder, _DEEPEST, _EVENTS))


def rank_of(path: Path) -> int | None:
    """Return the global rank in the name of a file: `rank-3.out`, `worker_rank3.log`."""
    match = _RANK.search(path.name)
    return int(match[1]) if match else None


def _below(folder: Path, depth: int, name: re.Pattern[str] = _LOG) -> Iterator[Path]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth > 1:
                yield from _below(folder / entry.name, depth - 1, name)
        elif name.search(entry.name) and _is_file(entry):
            yield folder / entry.name


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a file; a loop of links counts as one, and fails when it is read."""
    try:
        return entry.is_file()
    except OSError:
        return True


def readable(name: str) -> str:
    r"""Return a file name as printable UTF-8; other bytes become `\xff`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def jobs_of(files: Sequence[Path]) -> dict[Path, list[Path]]:
    """Return the files of each job, in their order; by default each file is one job.

    Several files form one job if they are in a folder with files of several ranks, in a log folder
    of torchrun, or are the standard output and error of one name. The key is the file or folder.
    """
    ranks = Counter(file.parent for file in files if rank_of(file) is not None)
    there = set(files)
    jobs: dict[Path, list[Path]] = {}
    for file in files:
        jobs.setdefault(_key(file, ranks, there), []).append(file)
    return jobs


def _key(file: Path, ranks: Counter[Path], there: set[Path]) -> Path:
    for folder in file.parents:
        if _ATTEMPT.match(folder.name):
            return folder.parent
    if ranks[file.parent] > 1:
        return file.parent
    output = file.with_name(_ERRORS.sub(lambda end: _OUTPUT[end[0]], file.name, count=1))
    return output if output in there else file
