"""Atomic writing of files; a crash leaves the old or the new file, and temporary files are removed.

A new file is written to a temporary file beside its target, which is locked while its writer runs:
the kernel releases the lock at any end. A later writer of the same target removes the files of
killed writers. Only files of this boot of this machine are checked, because locks are not reliable
between hosts that share a file system.
"""

from __future__ import annotations

import fcntl
import functools
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

# Names are at most 255 bytes long.
_NAME = 180
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@contextmanager
def new_file(path: Path, *, flush: bool = True, replace: bool = True) -> Iterator[BinaryIO]:
    """Write a temporary file, then rename it; with `flush`, after its bytes are on the disk.

    Raises:
        FileExistsError: the target exists, and `replace` is false.
        OSError: the disk is full, the folder is gone or cannot be written.
    """
    remove_stale(path)
    fresh, descriptor = _created(path)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            if flush:
                os.fsync(descriptor)
            # With the lock held: no process may find this file unlocked and remove it as stale.
            if replace:
                fresh.replace(path)
            else:
                os.link(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)


def write_atomic(
    path: Path, content: bytes | Iterable[bytes], *, flush: bool = True, replace: bool = True
) -> None:
    """Write a whole file; content may be given in parts.

    Raises:
        OSError: as for `new_file`.
    """
    with new_file(path, flush=flush, replace=replace) as stream:
        stream.writelines((content,) if isinstance(content, bytes) else content)


def remove_stale(path: Path) -> None:
    """Remove the temporary files of killed writers; active writers hold a lock."""
    beginning = _beginning(path.name)
    if not beginning:
        return
    with suppress(OSError), os.scandir(path.parent) as entries:
        stale = [Path(e.path) for e in entries if e.name.startswith(beginning)]
        for each in stale:
            _remove_unlocked(each)


def _created(path: Path) -> tuple[Path, int]:
    """Return a new file that no other writer has, locked where the file system has locks."""
    while True:
        beginning = (
            _beginning(path.name) or f".{os.fsdecode(os.fsencode(path.name)[:_NAME])}.unknown-"
        )
        fresh = path.with_name(f"{beginning}{os.getpid()}-{secrets.token_hex(4)}")
        # As in `open`, the umask limits the permissions.
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return fresh, descriptor
        # Another process removed it as stale before it was locked.
        os.close(descriptor)


def _remove_unlocked(path: Path) -> None:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except OSError:
        return
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Names are never used twice, so this is the file that is locked.
            path.unlink()
    finally:
        os.close(descriptor)


def _beginning(name: str) -> str:
    """Return the prefix of the names of temporary files of this boot of this machine."""
    boot = _boot()
    return f".{os.fsdecode(os.fsencode(name)[:_NAME])}.{boot}-" if boot else ""


@functools.cache
def _boot() -> str:
    try:
        return _BOOT.read_text(encoding="ascii").replace("-", "")[:12]
    except OSError:
        return ""
