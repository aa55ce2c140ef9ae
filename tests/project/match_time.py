"""What a pattern costs on a text: the CPU time of a call."""

import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from tests.project.hostile_texts import Text

# CPU time at which a call is ended.
MOST = 2.0


class Endless(Exception):
    """The CPU time of a match is used up."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """End what takes longer."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Endless

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def seconds_of(
    pattern: re.Pattern[Any], method: str, text: str | bytes, most: float = MOST
) -> float:
    """Return the CPU time of a call, `inf` beyond `most` seconds."""
    start = time.thread_time()
    try:
        with at_most(most):
            getattr(pattern, method)(text)
    except Endless:
        return float("inf")
    return time.thread_time() - start


def asked(pattern: re.Pattern[Any], text: Text) -> str | bytes:
    """Return a text as the pattern takes it."""
    whole = "".join(text)
    return whole.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else whole
