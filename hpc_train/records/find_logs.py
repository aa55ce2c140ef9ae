"""Paths -> log files: which of a folder's files are logs, and the rank that a name states."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

_LOG = re.compile(
    r"(?:\.(?:out|log|err|txt|stdout|stderr|[oe]\d+)(?:\.\d{1,4})?|^std(?:out|err)|metrics\.csv)"
    r"(?:\.(?:gz|xz|zst|bz2))?$"
)
_RANK = re.compile(r"rank[-_.]?(\d{1,7})(?!\d)")
# torchrun: job/attempt_0/3/stdout.log.
_DEEPEST = 5
NAMES = "*.out, *.log, *.err, *.txt, *.o123, stdout, stderr, metrics.csv, plain or compressed"


def log_files(paths: Iterable[Path]) -> list[Path]:
    """Return the log files among `paths` in order: a file itself, of a folder what lies below it.

    Folders that cannot be listed, hidden ones and links to folders are passed over.
    """
    files: set[Path] = set()
    for path in paths:
        files.update(_below(path, _DEEPEST) if path.is_dir() else [path])
    return sorted(files)


def rank_of(path: Path) -> int | None:
    """Return the global rank that a file's name states: `rank-3.out`, `worker_rank3.log`."""
    match = _RANK.search(path.name)
    return int(match[1]) if match else None


def _below(folder: Path, depth: int) -> Iterator[Path]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth > 1:
                yield from _below(folder / entry.name, depth - 1)
        elif _LOG.search(entry.name) and _is_file(entry):
            yield folder / entry.name


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a file; a loop of links counts as one, whose reader says what it is."""
    try:
        return entry.is_file()
    except OSError:
        return True


def readable(name: str) -> str:
    r"""Return the name of a file as text that can be written; of what is no UTF-8, `\xff`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
