"""The files of a working folder that a host gets: all that git does not ignore.

Without git, all but version control, virtual environments and caches. Results are never copied.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from hpc_train.errors import SubmitError
from hpc_train.subprocesses import exchange

MOST_MIB = 1024
_GIT_S = 60.0
_LEFT_OUT = {
    *(".git", ".hg", ".svn", ".venv", "venv", "__pycache__", "node_modules"),
    *(".mypy_cache", ".ruff_cache", ".pytest_cache"),
}


def files_to_copy(folder: Path, results: Path) -> list[str]:
    """Return the files of a working folder, relative to it, without those below `results`.

    Raises:
        SubmitError: together they are larger than a host should get for each run.
    """
    folder, results = folder.resolve(), results.resolve()
    listed = _of_git(folder)
    names = sorted(_walk(folder) if listed is None else listed)
    paths = {name: folder / name for name in names}
    kept = [name for name, path in paths.items() if _is_file(path) and not _below(path, results)]
    size = sum(paths[name].lstat().st_size for name in kept)
    if size > MOST_MIB << 20:
        raise SubmitError(
            f"{folder}: {size >> 20} MiB of files, but at most {MOST_MIB} MiB are copied to a host",
            "list data and checkpoints in .gitignore, or state a smaller workdir in the job",
        )
    return kept


def _is_file(path: Path) -> bool:
    return path.is_symlink() or path.is_file()


def _below(path: Path, folder: Path) -> bool:
    return folder in path.parents


def _of_git(folder: Path) -> list[str] | None:
    """Return the files that git tracks or would add; None outside a repository."""
    words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    done = exchange(("git", "-C", str(folder), *words), b"", _GIT_S)
    if done.returncode != 0:
        return None
    return [os.fsdecode(name) for name in dict.fromkeys(done.stdout.split(b"\0")) if name]


def _walk(folder: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        for name in names:
            yield os.path.relpath(f"{place}/{name}", folder)
