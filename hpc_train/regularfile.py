"""Open only regular files: a FIFO waits for a writer, a device never ends, a loop leads nowhere."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from pathlib import Path
from typing import BinaryIO, cast

# Of a file that is read as one piece; those that grow with a study are read in parts.
LARGEST = 1 << 30
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}
# Whoever names them wants what stands there: `-`, and what a shell makes of <(…).
_STREAMS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


class NotRegularError(OSError):
    """A name that stands for no regular file; `strerror` says for what."""


def open_regular(path: Path, buffering: int = -1) -> BinaryIO:
    """Open a regular file for reading; anything else is refused at once, and not waited for.

    Raises:
        OSError: it is no regular file, or cannot be opened.
    """
    # Opening some devices does something, so it is asked first, and once more when it is open.
    _check(path, path.stat())
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        _check(path, os.fstat(descriptor))
    except OSError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb", buffering=buffering)


def open_stream(path: Path) -> BinaryIO:
    """Open without a buffer: a regular file or, where it is named, what stands on a descriptor.

    Raises:
        OSError: as for `open_regular`.
    """
    if str(path).startswith(_STREAMS):
        return cast(BinaryIO, path.open("rb", buffering=0))
    return open_regular(path, buffering=0)


def read_regular(path: Path, largest: int = LARGEST) -> bytes:
    """Return what a regular file holds.

    Raises:
        OSError: it is no regular file, has more than `largest` bytes, or cannot be read.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > largest:
            raise OSError(errno.EFBIG, f"too large ({size} bytes, at most {largest})", str(path))
        return file.read()


def is_there(path: Path) -> bool:
    """Whether a folder has an entry of this name: also a loop, or a link to what is not there.

    True also where the folder may not be searched.
    """
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def is_regular(path: Path) -> bool:
    """Whether a name leads to a regular file."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Whether a name leads to a folder that this user may see."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except OSError:
        return False


def _check(path: Path, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise NotRegularError(errno.EINVAL, f"{kind}, not a regular file", str(path))


def sha256_of(path: Path) -> str:
    """Return the digest of a file's bytes as hex digits.

    Raises:
        OSError: it cannot be read.
    """
    digest = hashlib.sha256()
    with open_regular(path) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
