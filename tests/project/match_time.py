"""What a pattern costs on a text: the CPU time of a call, and the texts that cost most."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from tests.project.hostile_texts import Text, hostile_texts

LENGTH, SHORT, SHORTEST = 20_000, 5_000, 1_250
# Texts of one pattern that are measured as short ones, and those that are measured with care.
SLOW, SLOWEST = 24, 5
# CPU time at which a call is ended; a short text has a small part of what a long one has.
MOST, MOST_OF_SHORT = 2.0, 0.5


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


def yardstick() -> float:
    """Return the CPU time of a search that tries 64 lengths at each of 20,000 places."""
    return max(seconds_of(re.compile(r"\d{1,64}x"), "search", "0" * LENGTH), 1e-4)


def asked(pattern: re.Pattern[Any], text: Text) -> str | bytes:
    """Return a text as the pattern takes it."""
    whole = "".join(text)
    return whole.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else whole


def slowest(pattern: re.Pattern[Any]) -> list[tuple[float, str, Text]]:
    """Return the short texts on which a pattern seems slowest, with the time and the method.

    `match` does no more than `search`. One that is ended is the only one.
    """
    seemed = _measured(
        (pattern, method, text)
        for text in hostile_texts(pattern, SHORTEST)
        for method in ("search", "fullmatch")
    )
    if seemed[0][0] == float("inf"):
        return seemed
    longer = [
        (pattern, method, text.longer(SHORT // SHORTEST))
        for _, method, text in sorted(seemed, reverse=True)[:SLOW]
    ]
    return sorted(_measured(longer), reverse=True)[:SLOWEST]


def _measured(
    calls: Iterable[tuple[re.Pattern[Any], str, Text]],
) -> list[tuple[float, str, Text]]:
    """Return the time of each call; alone the first that is ended."""
    found: list[tuple[float, str, Text]] = []
    for pattern, method, text in calls:
        seconds = seconds_of(pattern, method, asked(pattern, text), MOST_OF_SHORT)
        if seconds == float("inf"):
            return [(seconds, method, text)]
        found.append((seconds, method, text))
    return found
