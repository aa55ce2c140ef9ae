"""Atomic writing of files, and reading of typed JSON files."""

import errno
import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from hpc_train.base.errors import LogParseError, NewerVersionError, StoreError, newer_version
from hpc_train.base.files import (
    is_own,
    is_regular,
    is_there,
    lock,
    open_lock,
    read_owned,
    read_regular,
    write_atomic,
)
from hpc_train.base.values import decode_unit, encode_unit
from hpc_train.runs.run import MANIFEST_SCHEMA, JobState, JobStatus, RunFolder, Submission

T = TypeVar("T")


class _Said(msgspec.Struct):
    """The keys that every version of a file has."""

    schema: int = MANIFEST_SCHEMA


def write_file(path: Path, content: bytes | Iterable[bytes], *, flush: bool = True) -> None:
    """Write to a temporary file, then rename it; a device or pipe is written to directly.

    `content` may be an iterable of parts; with `flush`, they are on the disk then.

    Raises:
        StoreError: the disk is full, the folder is gone or cannot be written.
    """
    parts = (content,) if isinstance(content, bytes) else content
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as stream:
                stream.writelines(parts)
            return
        # The target of a link is replaced, not the link.
        write_atomic(Path(os.path.realpath(path, strict=path.exists())), parts, flush=flush)
    except OSError as failure:
        raise cannot_write(path, failure) from None


def cannot_write(path: Path, failure: OSError) -> StoreError:
    """Return the error for a file or folder that cannot be written."""
    full = failure.errno in (errno.ENOSPC, errno.EDQUOT)
    if failure.errno == errno.ENOENT and not path.parent.exists():
        folder = path.parent
        return StoreError(
            f"{path}: cannot be written: there is no folder {folder}",
            f"mkdir -p {shlex.quote(str(folder))}",
        )
    return StoreError(
        f"{path}: cannot be written: {failure.strerror or failure}",
        "free some space, or name another folder" if full else "name another folder",
    )


def to_json(value: Any) -> bytes:
    """Return a value as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=encode_unit), indent=1) + b"\n"


def read_json(path: Path, kind: type[T]) -> T:
    """Read a JSON file of a known kind.

    Raises:
        StoreError: missing, unreadable, truncated, or of another kind.
        NewerVersionError: it has a newer schema.
    """
    return _read_json(path, kind)[0]


def _read_json(path: Path, kind: type[T]) -> tuple[T, bool]:
    try:
        raw, trusted = read_owned(path)
    except OSError as failure:
        raise StoreError(f"{path}: {failure.strerror or failure}") from None
    try:
        return msgspec.json.decode(raw, type=kind, dec_hook=decode_unit), trusted
    except RecursionError:
        raise StoreError(f"{path}: damaged: nested too deeply") from None
    except msgspec.DecodeError as failure:
        _refuse_newer(path, raw)
        raise StoreError(f"{path}: damaged: {failure}") from None


def read_submission(path: Path) -> Submission:
    """Read submission.json; that of another user does not choose what is run or called.

    Raises:
        StoreError, NewerVersionError: as for `read_json`.
    """
    found, trusted = _read_json(path, Submission)
    if trusted:
        return found
    # A job of PBS may name a server: 12.s@host.
    job = found.native_id.partition("@")[0]
    endpoint = msgspec.structs.replace(found.cluster, conf=None, clusters=None)
    return msgspec.structs.replace(found, native_id=job, cluster=endpoint)


def write_submission(run: RunFolder, submission: Submission) -> None:
    """Write a run's submission.json atomically.

    Raises:
        StoreError: the folder is gone or cannot be written.
    """
    content = msgspec.json.encode(submission, enc_hook=encode_unit) + b"\n"
    write_file(run.submission, content, flush=False)


def mark(run: RunFolder, submission: Submission, state: JobState, reason: str) -> None:
    """Record the final state of a run in its submission.json.

    Raises:
        StoreError: as for `write_submission`.
    """
    write_submission(run, msgspec.structs.replace(submission, state=state, reason=reason))


def status_of(run: RunFolder) -> JobStatus | None:
    """Return the contents of status.json; None if it is missing or not readable."""
    try:
        return msgspec.json.decode(read_regular(run.status), type=JobStatus)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None


def check_version(path: Path) -> None:
    """Check the schema of a file, which may be missing or damaged.

    Raises:
        NewerVersionError: a newer version wrote it.
    """
    with suppress(OSError):
        _refuse_newer(path, read_regular(path))


def _refuse_newer(path: Path, raw: bytes) -> None:
    with suppress(msgspec.DecodeError, RecursionError):
        schema = msgspec.json.decode(raw, type=_Said).schema
        if schema > MANIFEST_SCHEMA:
            raise NewerVersionError(*newer_version(str(path), schema, MANIFEST_SCHEMA)) from None


@contextmanager
def exclusive(path: Path, say: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold an exclusive lock on a file during a block, and wait for it if necessary.

    With `say`, the file names the process that holds it, and `say` receives for whom it waits.

    Raises:
        StoreError: the lock file cannot be created.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # In a shared folder, the umask may give write access to the group.
        descriptor = open_lock(path, 0o666)
    except PermissionError as failure:
        raise StoreError(
            f"{path.parent}: cannot be written: {failure.strerror}",
            "for runs of your own, name another folder: hpctrain submit FILE --results FOLDER",
        ) from None
    except OSError as failure:
        raise cannot_write(path, failure) from None
    try:
        _take(descriptor, path, say or (lambda _: None))
        # The lock holds without a name, which does not fit on a full disk.
        with suppress(OSError):
            if say is not None:
                os.truncate(descriptor, 0)
                holder = f"process {os.getpid()} on {os.uname().nodename}"
                os.pwrite(descriptor, holder.encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path, say: Callable[[str], None]) -> None:
    def waits() -> None:
        holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip()
        say(f"{path.parent.name}: waiting for {holder or 'another process'}, which submits, too")

    try:
        lock(descriptor, waits)
    except OSError as failure:
        raise StoreError(
            f"{path}: cannot be locked: {failure.strerror or failure}",
            "this file system is mounted without locks (Lustre: -o flock); change --results",
        ) from None


def expanded(word: str) -> list[Path]:
    """Return the path of an argument (`-`: stdin), or those that a pattern matches."""
    if word == "-":
        return [Path("/dev/stdin")]
    if Path(word).exists():
        return [Path(word)]
    pattern = Path(word)
    try:
        return sorted(Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor))))
    except ValueError:
        return []


def default_results() -> Path:
    """Return the folder of all results without --results: $HPCTRAIN_RESULTS, or ./results."""
    return Path(os.environ.get("HPCTRAIN_RESULTS") or "results")


# Cache files of results from a run's logs, which are read if the logs are deleted.


def write_cache(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file; a failure is ignored, and in a folder of another user nothing is written.

    Unchanged content is not written again, unless it is given in parts.
    """
    with suppress(StoreError, OSError):
        if not is_own(path.absolute().parent):
            return
        if is_there(path) and not is_regular(path):
            # Writing to a FIFO would wait for a reader.
            return
        if isinstance(content, bytes) and is_there(path) and read_regular(path) == content:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, content)


def read_cache(path: Path, decode: Callable[[bytes], T]) -> T | None:
    """Read a cache file; None if there is none.

    Raises:
        LogParseError: the file is damaged.
    """
    if not is_there(path):
        return None
    try:
        return decode(read_regular(path))
    except OSError as failure:
        raise LogParseError(f"{path}: {failure.strerror or failure}") from None
    except (msgspec.DecodeError, RecursionError) as failure:
        raise LogParseError(f"{path}: damaged: {failure}") from None
