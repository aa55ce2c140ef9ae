"""Run folders below `results/<name>/`: created, found by a word, and read."""

import errno
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from hpc_train.base.errors import NewerVersionError, StoreError, UnknownNameError
from hpc_train.base.files import is_there, read_regular
from hpc_train.runs.json_files import (
    cannot_write,
    check_version,
    read_json,
    read_submission,
    to_json,
    write_file,
)
from hpc_train.runs.run import (
    JobStart,
    JobStatus,
    Manifest,
    Run,
    RunFolder,
    Script,
    Seconds,
    StudyManifest,
)

T = TypeVar("T")
STUDY_FILE = "study.json"
# Prefix of the name of a folder that is being created or removed.
_NEW, _GONE = ".new-", ".gone-"


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
        for name, text in script.beside:
            (fresh.path / name).write_bytes(text.encode())
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


def read_run(folder: RunFolder) -> Run:
    """Read the files of a run; a damaged or newer file becomes a problem, not an error."""
    problems: list[str] = []

    def found(path: Path, read: Callable[[Path], T]) -> T | None:
        try:
            return read(path)
        except NewerVersionError:
            raise
        except StoreError as failure:
            problems.append(failure.message.replace(str(path), path.name, 1))
            return None

    submission = status = None
    try:
        manifest = found(folder.manifest, partial(read_json, kind=Manifest))
        if is_there(folder.submission):
            submission = found(folder.submission, read_submission)
        if is_there(folder.status):
            status = found(folder.status, partial(read_json, kind=JobStatus))
    except NewerVersionError as newer:
        problem = newer.message.replace(f"{folder.path}/", "", 1)
        return Run(
            folder=folder, manifest=None, submission=None, status=None, problem=problem, newer=True
        )
    return Run(
        folder=folder,
        manifest=manifest,
        submission=submission,
        status=status,
        problem="; ".join(problems),
        starts=read_starts(folder, manifest, status),
        logged=is_there(folder.logs / "job.out"),
    )


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


def find(root: Path, word: str) -> Path:
    """Return the folder of a path, a job or study name, or a run id or its prefix.

    Raises:
        UnknownNameError: nothing has that name; the message lists the nearest names.
        StoreError: the prefix of several run ids.
        NewerVersionError: a newer version wrote the run, the study, or all runs of the folder.
    """
    path = _find(root, word)
    check_version(path / STUDY_FILE)
    newer: NewerVersionError | None = None
    for folder in (RunFolder(path=path),) if is_run(path) else run_folders(path):
        try:
            check_version(folder.manifest)
            return path
        except NewerVersionError as failure:
            newer = newer or failure
    if newer is not None:
        raise newer
    return path


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


CHECKPOINTS = "HPCTRAIN_CHECKPOINTS"
# Of a file with two numbers [bytes].
_LONGEST = 100


def read_starts(
    folder: RunFolder, manifest: Manifest | None, status: JobStatus | None
) -> tuple[JobStart, ...]:
    """Return the starts that ended; a line that a full disk cut off is left out."""
    if manifest is None or manifest.plan.lifecycle is None or not is_there(folder.restarts):
        return ()
    starts = []
    with suppress(OSError):
        for line in read_regular(folder.restarts).splitlines():
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                starts.append(msgspec.json.decode(line, type=JobStart))
    return with_loadable_steps(starts, _running(folder, manifest, status))


def with_loadable_steps(
    starts: Sequence[JobStart], running: JobStart | None
) -> tuple[JobStart, ...]:
    """Set the last checkpoint of each start to the one that later starts could load."""
    found: list[JobStart] = []
    after = running
    for start in reversed(starts):
        if after is not None and after.loaded is not None and after.loaded < start.step:
            found.append(
                msgspec.structs.replace(
                    start, step=after.loaded, saved=after.loaded_saved, damaged=start.step
                )
            )
        else:
            found.append(start)
        loading = [one for one in (start, after) if one is not None and one.loaded is not None]
        after = min(loading, key=lambda one: one.loaded or 0, default=None)
    return tuple(reversed(found))


def _running(folder: RunFolder, manifest: Manifest, status: JobStatus | None) -> JobStart | None:
    """Return the start that has not ended, with the checkpoint that it loaded."""
    if status is None or status.ended is not None:
        return None
    named = dict(manifest.plan.env).get(CHECKPOINTS, folder.path / "checkpoints")
    file = Path(str(named)) / "resumed"
    with suppress(OSError, ValueError, msgspec.ValidationError):
        step, _, saved = read_regular(file, _LONGEST).decode().strip().partition(" ")
        if file.stat().st_mtime >= status.started:
            start = JobStart(restart=status.restart_count, started=status.started, loaded=int(step))
            return msgspec.structs.replace(
                start, loaded_saved=msgspec.convert(float(saved), Seconds) if saved else None
            )
    return None
