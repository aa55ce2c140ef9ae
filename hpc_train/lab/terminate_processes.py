"""The lab's processes: daemons by id and start time, everything else by its namespace."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from hpc_train.model.value import Value

NETNS = Path("/run/netns")


class Daemon(Value, frozen=True, kw_only=True):
    """A started daemon; the process id alone does not identify it, because ids are reused.

    The start time counts from the boot, so the boot id is recorded as well.
    """

    name: str
    pid: int
    started: int
    boot: str = ""


def boot_id() -> str:
    """Return the id of the current boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def start_time(pid: int) -> int | None:
    """Return when a process started, in ticks since boot; None when it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second field, the program's name, may contain blanks and brackets.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])


def is_alive(daemon: Daemon) -> bool:
    """Whether this process still exists."""
    return daemon.boot in ("", boot_id()) and start_time(daemon.pid) == daemon.started


def members(namespaces: Iterable[str]) -> set[int]:
    """Return the ids of the processes inside network namespaces given by name."""
    wanted = {one for name in namespaces if (one := _identity(NETNS / name)) is not None}
    pids = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    return {pid for pid in pids if _identity(Path(f"/proc/{pid}/ns/net")) in wanted}


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def end(alive: Callable[[], set[int]], grace_s: float) -> bool:
    """Terminate processes, then kill those that remain; return whether all have ended."""
    _signal(alive(), signal.SIGTERM)
    if _await(alive, grace_s):
        return True
    for _ in range(10):
        _signal(alive(), signal.SIGKILL)
        if _await(alive, 0.5):
            return True
    return False


def _await(alive: Callable[[], set[int]], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while alive():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
