"""The local queue: a list of runs, and a lock that is held while its supervisor runs.

The kernel releases a lock when its last holder ends, so a killed queue is detected at once, without
relying on process ids.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from hpc_train.model.value import Value

FOLDER = ".queue"


class LocalQueue(Value, frozen=True, kw_only=True):
    """The files of one queue below the folder of its job or study."""

    home: Path
    queue_id: str

    def file(self, ending: str) -> Path:
        """Return the queue's `lock`, `json` or `log` file."""
        return self.home / FOLDER / f"{self.queue_id}.{ending}"

    def reason(self, run_id: str) -> str:
        """Return what the supervisor last said of a run in its log; empty if it said nothing."""
        said = ""
        with suppress(OSError):
            for line in self.file("log").read_text(errors="replace").splitlines():
                if line.startswith(f"{run_id}: "):
                    said = line.removeprefix(f"{run_id}: ")
        return said


def take(path: Path, *, wait: bool) -> int | None:
    """Take a lock and return its file descriptor; None if another process holds it.

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
    """Whether the lock is held; None if this user may not read it.

    The file is opened read-only, so that other users can query the state of runs.
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
    """Return the lock that prevents one user's local runs from overlapping on a machine."""
    return Path(tempfile.gettempdir()) / f"hpctrain-{os.getuid()}.lock"
