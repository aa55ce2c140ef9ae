"""Words of a user -> folders of runs, jobs and studies below the folder of all results."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from hpc_train.errors import NewerVersionError, StoreError, UnknownNameError
from hpc_train.json_files import check_version
from hpc_train.model.run import RunFolder
from hpc_train.regularfile import is_there
from hpc_train.runs.run_folders import STUDY_FILE, is_run, run_folders


def find(root: Path, word: str) -> Path:
    """Return the folder of a path, a job or study name, or a run id or its prefix.

    Raises:
        UnknownNameError: nothing has that name; the message lists the nearest names.
        StoreError: the prefix of several run ids.
        NewerVersionError: a newer version wrote the run, the study, or all runs of the folder.
    """
    found = _find(root, word)
    _check_versions(found)
    return found


def _check_versions(path: Path) -> None:
    check_version(path / STUDY_FILE)
    newer: NewerVersionError | None = None
    for folder in (RunFolder(path=path),) if is_run(path) else run_folders(path):
        try:
            return check_version(folder.manifest)
        except NewerVersionError as failure:
            newer = newer or failure
    if newer is not None:
        raise newer
    return None


def _find(root: Path, word: str) -> Path:
    if not word:
        raise StoreError("the name of a run cannot be empty", "hpctrain status lists them")
    for path in (Path(word), root / word):
        if path.is_dir() and (is_run(path) or run_folders(path)):
            return path
        if is_there(path / STUDY_FILE):
            return path
    runs = {folder.run_id: folder.path for home in homes(root) for folder in run_folders(home)}
    exact = [runs[word]] if word in runs else [p for i, p in runs.items() if i.startswith(word)]
    if len(exact) == 1:
        return exact[0]
    if exact:
        names = ", ".join(sorted(path.name for path in exact)[:5])
        raise StoreError(f"{word!r} is the prefix of {len(exact)} runs: {names} …")
    known = [home.name for home in homes(root)] + list(runs)
    hint = "hpctrain status lists them" if known else "start with: hpctrain submit FILE"
    raise UnknownNameError("run or study", word, known, str(root), hint)


def homes(root: Path) -> Iterator[Path]:
    """Yield the folders of all jobs and studies that have or expect runs.

    Raises:
        StoreError: the path is that of a file.
    """
    if root.exists() and not root.is_dir():
        raise StoreError(f"{root}: not a folder", "--results names the folder of all results")
    for path in sorted(root.iterdir()) if root.is_dir() else ():
        try:
            wanted = path.is_dir() and (run_folders(path) or is_there(path / STUDY_FILE))
        except PermissionError:
            logging.getLogger(__name__).warning("%s cannot be read", path)
            continue
        if wanted:
            yield path
