"""The local queue: a list of runs, and a lock that lives as long as somebody works on it.

The kernel drops a lock when its last holder dies, so a queue that was killed is seen at once,
and no process id can be mistaken for another.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path

from hpc_train.model.value import Value

FOLDER = ".queue"


class Queue(Value, frozen=True, kw_only=True):
    """The files of one queue below the folder of its job or study."""

    home: Path
    queue_id: str

    def file(self, ending: str) -> Path:
        """Return the queue's `lock`, `json` or `log` file."""
        return self.home / FOLDER / f"{self.queue_id}.{ending}"


def take(path: Path, *, wait: bool) -> int | None:
    """Take a lock and return its file descriptor; None when somebody has it.

    Raises:
        OSError: the file cannot be opened.
    """
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def is_held(path: Path) -> bool | None:
    """Whether somebody holds the lock; None when this user may not look.

    It is asked read-only, so that a colleague can see how your runs stand.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except PermissionError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def machine_lock() -> Path:
    """Return the lock that keeps one user's local runs from overlapping on a machine."""
    return Path(tempfile.gettempdir()) / f"hpctrain-{os.getuid()}.lock"
