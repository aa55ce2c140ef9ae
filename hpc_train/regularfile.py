"""Reading of regular files only: opening a FIFO may block, and reading a device may not end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, cast

# Limit for files that are read completely; files that grow with a study are read in parts.
LARGEST = 1 << 30
_PART = 1 << 16
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}
# Streams that a user names explicitly: stdin, and the process substitution <(…) of a shell.
_STREAMS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


class NotRegularError(OSError):
    """The path is not that of a regular file; `strerror` names its type."""


def open_regular(path: Path, buffering: int = -1) -> BinaryIO:
    """Open a regular file for reading; any other file is refused without waiting for it.

    Raises:
        OSError: it is not a regular file, or cannot be opened.
    """
    return os.fdopen(_descriptor(path)[0], "rb", buffering=buffering)


def open_stream(path: Path) -> BinaryIO:
    """Open a regular file, or a descriptor such as /dev/stdin that is named, without a buffer.

    Raises:
        OSError: as for `open_regular`.
    """
    if str(path).startswith(_STREAMS):
        return cast(BinaryIO, path.open("rb", buffering=0))
    return open_regular(path, buffering=0)


def read_regular(path: Path, largest: int = LARGEST) -> bytes:
    """Return the contents of a regular file.

    Raises:
        OSError: it is not a regular file, has more than `largest` bytes, or cannot be read.
    """
    # Without a file object: a study has thousands of small files.
    descriptor, size = _descriptor(path)
    try:
        if size > largest:
            raise OSError(errno.EFBIG, f"too large ({size} bytes, at most {largest})", str(path))
        parts = []
        while part := os.read(descriptor, max(size + 1, _PART)):
            parts.append(part)
            size = 0
        return b"".join(parts)
    finally:
        os.close(descriptor)


def is_there(path: Path) -> bool:
    """Whether a path exists, including links to missing files and loops of links.

    True also if this user may not search the folder.
    """
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def is_regular(path: Path) -> bool:
    """Whether a path is that of a regular file."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Whether a path is that of a folder that this user may see."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except OSError:
        return False


def _descriptor(path: Path) -> tuple[int, int]:
    """Open a regular file; return its descriptor and its size [B]."""
    # Opening some devices has side effects: the type is checked before and after opening.
    _check(path, path.stat())
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        found = os.fstat(descriptor)
        _check(path, found)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor, found.st_size


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
    # It loads OpenSSL, which most commands do not need.
    import hashlib

    digest = hashlib.sha256()
    with open_regular(path) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
