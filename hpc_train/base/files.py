"""Files: what their first bytes are, safe reading, atomic writing."""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO, cast

# Names are at most 255 bytes long.
_NAME = 180


def write_atomic(
    path: Path, content: bytes | Iterable[bytes], *, flush: bool = True, replace: bool = True
) -> None:
    """Write a temporary file, then rename it; with `flush`, after its bytes are on the disk.

    The content may be given in parts.

    Raises:
        FileExistsError: the target exists, and `replace` is false.
        OSError: the disk is full, the folder is gone or cannot be written.
    """
    beginning = os.fsdecode(os.fsencode(path.name)[:_NAME])
    fresh = path.with_name(f".{beginning}.{os.getpid()}-{os.urandom(4).hex()}")
    try:
        with fresh.open("xb") as stream:
            stream.writelines((content,) if isinstance(content, bytes) else content)
            stream.flush()
            if flush:
                os.fsync(stream.fileno())
        if replace:
            fresh.replace(path)
        else:
            os.link(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)


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


def open_regular(path: Path, buffering: int = -1) -> BinaryIO:
    """Open a regular file for reading; any other file is refused without waiting for it.

    Raises:
        OSError: it is not a regular file, or cannot be opened.
    """
    return os.fdopen(_descriptor(path)[0], "rb", buffering=buffering)


def open_to_append(path: Path) -> BinaryIO:
    """Open a new or a regular file of a run folder for appending.

    Raises:
        OSError: it is another kind of file.
    """
    if not os.path.lexists(path):
        path.touch()
    return os.fdopen(_descriptor(path, os.O_WRONLY | os.O_APPEND)[0], "ab")


def open_lock(path: Path, mode: int) -> int:
    """Open a new or a regular file to lock it, never through a link.

    Raises:
        OSError: it is another kind of file, or cannot be opened.
    """
    flags = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = os.open(path, flags, mode)
    try:
        _check(path, os.fstat(descriptor))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def lock(descriptor: int, waits: Callable[[], None] | None = None) -> bool:
    """Lock an open file for this process and its children; whether it has the lock.

    If another process holds it, it is waited for if there is `waits`, which is called before.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if waits is None:
            return False
        waits()
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return True


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
    return read_owned(path, largest)[0]


def read_owned(path: Path, largest: int = LARGEST) -> tuple[bytes, bool]:
    """Return the contents of a regular file, and whether it belongs to this user or to root.

    Raises:
        OSError: as for `read_regular`.
    """
    # Without a file object: a study has thousands of small files.
    descriptor, found = _descriptor(path)
    try:
        size = found.st_size
        if size > largest:
            raise OSError(errno.EFBIG, f"too large ({size} bytes, at most {largest})", str(path))
        parts = []
        while part := os.read(descriptor, max(size + 1, _PART)):
            parts.append(part)
            size = 0
        return b"".join(parts), found.st_uid in (os.geteuid(), 0)
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
    """Whether a path is that of a regular file that may be read."""
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


def files_in(folder: Path, pattern: str = "*") -> list[Path]:
    """Return the regular files of a folder with names of a pattern, sorted; none if unreadable."""
    if not is_folder(folder):
        return []
    with suppress(OSError), os.scandir(folder) as entries:
        # A folder may have a hundred thousand files: only what a link leads to is looked at.
        names = sorted(
            entry.name
            for entry in entries
            if fnmatchcase(entry.name, pattern)
            and (entry.is_file(follow_symlinks=False) or is_regular(folder / entry.name))
        )
        return [folder / name for name in names]
    return []


def is_own(path: Path) -> bool:
    """Whether a file, or the nearest folder above a missing one, belongs to this user.

    Root may write for others too, who would then own neither the file nor its folder.
    """
    here = next((one for one in (path, *path.parents) if one.exists()), Path("/"))
    return here.stat().st_uid == os.geteuid()


def owner(path: Path) -> str:
    """Return the name of the user to whom a file or folder belongs."""
    try:
        return path.owner()
    except KeyError:
        return str(path.stat().st_uid)


def _descriptor(path: Path, flags: int = os.O_RDONLY) -> tuple[int, os.stat_result]:
    """Open a regular file."""
    # Opening some devices has side effects: the type is checked before and after opening.
    _check(path, path.stat())
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        found = os.fstat(descriptor)
        _check(path, found)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor, found


def _check(path: Path, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise OSError(errno.EINVAL, f"{kind}, not a regular file", str(path))


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


_EXPORT = "export the results as CSV, or name the log as text"
BINARY = f"is a binary file, not text: {_EXPORT}"
START = 4096
# Without the characters that terminals use: backspace to carriage return, escape.
_CONTROLS = bytes([*range(8), *range(14, 27), *range(28, 32)])
_MAGIC = {
    b"%PDF-": "PDF",
    b"\x89PNG\r\n\x1a\n": "PNG image",
    b"\x89HDF\r\n\x1a\n": "HDF5 file",
    b"SQLite format 3\0": "SQLite database",
    b"PAR1": "Parquet file",
    b"PK\x03\x04": "zip archive, workbook or checkpoint",
}


def binary_kind(start: bytes) -> str:
    """Return what a file with these first bytes is; an empty text if it may be a log."""
    for magic, name in _MAGIC.items():
        if start.startswith(magic):
            return f"{name}: {_EXPORT}"
    # More than 1 of 20 bytes is a control character.
    controls = len(start) - len(start.translate(None, _CONTROLS))
    return BINARY if 20 * controls > len(start) else ""
