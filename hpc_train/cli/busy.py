"""A line on the terminal while a command has nothing to print."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hpc_train.base.plain_text import plain

# Start of the line, and deletion up to its end.
CLEAR = "\r\x1b[K"
_AFTER_S = 1.0


@contextmanager
def busy(text: str | Callable[[], str]) -> Iterator[None]:
    """Show on stderr what a command does, and since when, each second from the first one on.

    A function is called each time, so that it can count. Nothing is shown if stderr is not a
    terminal; at the end the line is erased. A signal is used, not a thread: logs are read in
    forked processes.
    """
    if not sys.stderr.isatty():
        yield
        return
    begun = time.monotonic()

    def show(_signal: int, _frame: object) -> None:
        # The handler may interrupt a buffered write.
        now = text if isinstance(text, str) else text()
        line = f"{CLEAR}{plain(now)}, {time.monotonic() - begun:.0f} s"
        os.write(sys.stderr.fileno(), line.encode())

    before = signal.signal(signal.SIGALRM, show)
    signal.setitimer(signal.ITIMER_REAL, _AFTER_S, _AFTER_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if time.monotonic() - begun >= _AFTER_S:
            os.write(sys.stderr.fileno(), CLEAR.encode())
