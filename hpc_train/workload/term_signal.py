"""TERM in a job that is queued again: Slurm preempts it, and the rank saves before it ends.

Slurm sends TERM to all processes of the ranks, and KILL after the `GraceTime` of the QOS or, if it
has none, after `KillWait`. A launcher sends TERM too, when another rank has failed: then a rank
ends at once. A thread looks whether one has, because Python's handlers wait until the main thread
returns from a collective, which may never be.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from threading import Thread
from types import FrameType

REQUEST = "HPCTRAIN_STOP_AT_TERM"
FAILURE = "HPCTRAIN_FAILURE_FILE"
# As a shell reports the end by TERM (POSIX, 2.8.2).
_TERMINATED = 128 + signal.SIGTERM
_arrived = False
_process = 0


def is_request() -> bool:
    """Whether the job says that TERM asks its ranks to save."""
    return bool(os.environ.get(REQUEST))


def arrived() -> bool:
    """Whether TERM has asked this rank to stop."""
    return _arrived


def listen() -> None:
    """Note TERM from now on, unless the program or the job has another use of it."""
    global _process  # a handler has no other place
    if _process == os.getpid() or not is_request():
        return
    if signal.getsignal(signal.SIGTERM) not in (signal.SIG_DFL, signal.SIG_IGN):
        return
    _process = os.getpid()
    signal.signal(signal.SIGTERM, _note)
    read, write = os.pipe()
    os.set_blocking(write, False)
    if (other := signal.set_wakeup_fd(write, warn_on_full_buffer=False)) != -1:
        signal.set_wakeup_fd(other)  # the program's own, of asyncio for example
        return
    Thread(target=_watch, args=(read,), name="hpctrain-term", daemon=True).start()


def _watch(read: int) -> None:
    """End this process at a TERM that follows the failure of another rank."""
    while number := os.read(read, 1):
        if number[0] == signal.SIGTERM and _another_failed():
            os._exit(_TERMINATED)


def _another_failed() -> bool:
    """Whether a rank has left its failure; one that is being written has no content yet."""
    file = os.environ.get(FAILURE)
    with suppress(OSError):
        return bool(file) and Path(str(file)).stat().st_size > 0
    return False


def _note(number: int, frame: FrameType | None) -> None:
    global _arrived
    if os.getpid() != _process:  # a child of the rank, which has its handler
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    _arrived = True
