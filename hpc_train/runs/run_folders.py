"""Create and read run folders below `results/<name>/`."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from hpc_train.errors import NewerVersionError, StoreError
from hpc_train.json_files import cannot_write, read_json, to_json, write_file
from hpc_train.model.run import JobStart, JobStatus, Manifest, RunFolder
from hpc_train.model.study import StudyManifest
from hpc_train.model.submission import Script, Submission
from hpc_train.model.value import Value
from hpc_train.regularfile import is_there
from hpc_train.runs.job_starts import read_starts

T = TypeVar("T")
STUDY_FILE = "study.json"
# Prefix of the name of a folder that is being created or removed.
_NEW, _GONE = ".new-", ".gone-"


class RunFiles(Value, frozen=True, kw_only=True):
    """The contents of a run's files; None for a missing or damaged file, named in `problem`.

    `logged`: whether the job script's log exists. None is read of a run of a `newer` version.
    """

    folder: RunFolder
    manifest: Manifest | None
    submission: Submission | None
    status: JobStatus | None
    problem: str = ""
    starts: tuple[JobStart, ...] = ()
    logged: bool = True
    newer: bool = False


def create_runs(home: Path, runs: Sequence[tuple[Manifest, Script]]) -> tuple[RunFolder, ...]:
    """Create the folders of several runs: all of them or, if one fails, none.

    An existing run (created by another process) is left unchanged and not returned. The remains of
    a killed command are removed: the caller holds the lock of `home`.

    Raises:
        StoreError: a folder cannot be written, or its name is used by a folder that is not a run.
    """
    created: list[RunFolder] = []
    _make_home(home)
    for begun in (path for mark in (_NEW, _GONE) for path in home.glob(f"{mark}*")):
        shutil.rmtree(begun, ignore_errors=True)
    try:
        for manifest, script in runs:
            folder = _create_run(home, manifest, script)
            if folder is not None:
                created.append(folder)
    except StoreError:
        remove_runs(created)
        raise
    return tuple(created)


def _make_home(home: Path) -> None:
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise cannot_write(home, failure) from None


def remove_runs(folders: Sequence[RunFolder]) -> None:
    """Remove the folders of runs that were never submitted."""
    for folder in folders:
        gone = folder.path.with_name(f"{_GONE}{folder.run_id}-{os.getpid()}")
        with suppress(OSError):
            folder.path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def remove_home(home: Path) -> None:
    """Remove the folder of a job or study without runs."""
    if not run_folders(home) and not is_there(home / STUDY_FILE):
        shutil.rmtree(home, ignore_errors=True)


def remove_root(root: Path) -> None:
    """Remove an unused results folder."""
    with suppress(OSError):
        root.rmdir()


def _create_run(home: Path, manifest: Manifest, script: Script) -> RunFolder | None:
    fresh = RunFolder(path=home / f"{_NEW}{manifest.run_id}-{os.getpid()}")
    final = RunFolder(path=home / manifest.run_id)
    try:
        fresh.path.mkdir()
        fresh.logs.mkdir()
        # The rename makes all of them visible. The files are not flushed to the disk: that would
        # take longer than sbatch.
        fresh.manifest.write_bytes(to_json(manifest))
        fresh.script.write_bytes(script.text.encode())
        fresh.path.rename(final.path)
    except OSError as failure:
        shutil.rmtree(fresh.path, ignore_errors=True)
        if failure.errno in (errno.EEXIST, errno.ENOTEMPTY):
            if is_there(final.manifest):
                return None
            message = f"{final.path}: a folder of this name exists and is not a run (no run.json)"
            raise StoreError(message, "check its contents, and move it away") from None
        raise cannot_write(final.path, failure) from None
    return final


def read_run(folder: RunFolder) -> RunFiles:
    """Read the files of a run; a damaged or newer file becomes a problem, not an error."""
    try:
        return _files(folder)
    except NewerVersionError as newer:
        problem = newer.message.replace(f"{folder.path}/", "", 1)
        return RunFiles(
            folder=folder, manifest=None, submission=None, status=None, problem=problem, newer=True
        )


def _files(folder: RunFolder) -> RunFiles:
    problems: list[str] = []
    manifest = _read(folder.manifest, Manifest, problems, required=True)
    submission = _read(folder.submission, Submission, problems)
    status = _read(folder.status, JobStatus, problems)
    return RunFiles(
        folder=folder,
        manifest=manifest,
        submission=submission,
        status=status,
        problem="; ".join(problems),
        starts=read_starts(folder, manifest, status),
        logged=is_there(folder.logs / "job.out"),
    )


def _read(path: Path, kind: type[T], problems: list[str], *, required: bool = False) -> T | None:
    if not required and not is_there(path):
        return None
    try:
        return read_json(path, kind)
    except NewerVersionError:
        raise
    except StoreError as failure:
        problems.append(failure.message.replace(str(path), path.name, 1))
        return None


def run_folders(home: Path) -> tuple[RunFolder, ...]:
    """Return the runs below the folder of a job or study, by name."""
    if not home.is_dir():
        return ()
    folders = tuple(
        RunFolder(path=path)
        for path in sorted(home.iterdir())
        if not path.name.startswith(".") and is_run(path)
    )
    # The folder may contain others that this user cannot read.
    sure = is_there(home / STUDY_FILE) or any(os.access(run.path, os.X_OK) for run in folders)
    return folders if sure else ()


def is_run(path: Path) -> bool:
    """Whether a folder is that of a run, even with a damaged run.json."""
    return is_there(path / "run.json")


def read_study(home: Path) -> StudyManifest | None:
    """Return the study that a folder belongs to, or None for single jobs.

    Raises:
        StoreError: study.json is damaged.
    """
    path = home / STUDY_FILE
    return read_json(path, StudyManifest) if is_there(path) else None


def write_study(home: Path, manifest: StudyManifest) -> None:
    """Write study.json, the list of all requested runs."""
    _make_home(home)
    write_file(home / STUDY_FILE, to_json(manifest))
