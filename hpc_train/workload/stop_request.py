"""The request of the job to stop: the signal USR1 to a rank, or a file."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import FrameType

from hpc_train.workload import hang_watch
from hpc_train.workload.process_group import any_ranks

STOP_FILE = "HPCTRAIN_STOP_FILE"
_stop = False


def should_stop() -> bool:
    """Whether any rank was asked to stop: every rank must call it, equally often.

    A rank is asked by the signal USR1, or by a file whose path is $HPCTRAIN_STOP_FILE. The ranks
    agree by one all-reduce of a number.
    """
    return stop_or_due(due=False)[0]


def stop_or_due(*, due: bool) -> tuple[bool, bool]:
    """Return `should_stop()`, and whether a checkpoint is due on any rank."""
    listen()
    hang_watch.progress()
    file = os.environ.get(STOP_FILE)
    stop, on_any = any_ranks((_stop or bool(file and Path(file).exists()), due))
    return stop, on_any


def listen() -> None:
    """Note USR1 from now on, instead of ending at it; only in the main thread of a program."""
    if signal.getsignal(signal.SIGUSR1) in (signal.SIG_DFL, signal.SIG_IGN):
        signal.signal(signal.SIGUSR1, _note)


def _note(number: int, frame: FrameType | None) -> None:
    global _stop  # a handler has no other place
    _stop = True
