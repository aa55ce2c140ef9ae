"""No regular expression of the package is slow, whatever the text and however it is asked.

What 20,000 characters may cost is counted in runs of a yardstick on this machine, and in CPU time:
50 ms where the yardstick takes 6 ms. What costs more than a tenth of it must grow with the length
of the text and not with its square.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple

import pytest

from tests.project.compiled_patterns import patterns
from tests.project.hostile_texts import Text, hostile_texts

LENGTH, SHORT = 20_000, 5_000
LIMIT = 10.0
ROUNDS = 5
# Texts of one pattern that are measured with care; patterns in one test.
SLOWEST, TOGETHER = 5, 20
FOUND = patterns()
YARDSTICK = (re.compile(r"\d{1,64}x"), "0" * LENGTH)


class Endless(Exception):
    """The CPU time of a match is used up."""


class Slow(NamedTuple):
    """A text on which a pattern took too long, in yardsticks."""

    place: str
    pattern: str
    method: str
    start: str
    end: str
    cost: float


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise Endless

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def seconds_of(pattern: re.Pattern[Any], method: str, text: str | bytes) -> float:
    """Return the CPU time of a call, `inf` beyond 2 s."""
    start = time.thread_time()
    try:
        with at_most(2):
            getattr(pattern, method)(text)
    except Endless:
        return float("inf")
    return time.thread_time() - start


def cost(pattern: re.Pattern[Any], method: str, text: str | bytes) -> float:
    """Return the least of some rounds, each beside the yardstick."""
    least = float("inf")
    for _ in range(ROUNDS):
        took = seconds_of(pattern, method, text)
        if took == float("inf"):
            return took
        least = min(least, took / max(seconds_of(YARDSTICK[0], "search", YARDSTICK[1]), 1e-4))
    return least


def asked(pattern: re.Pattern[Any], text: Text) -> str | bytes:
    whole = "".join(text)
    return whole.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else whole


def slow_texts(pattern: re.Pattern[Any], place: str) -> Iterator[Slow]:
    """Yield the texts on which a pattern takes too long; `match` does no more than `search`.

    It is asked of short texts; those on which it seemed slowest are then measured with care.
    """
    seemed: list[tuple[float, str, Text]] = []
    for text in hostile_texts(pattern, SHORT):
        for method in ("search", "fullmatch"):
            seconds = seconds_of(pattern, method, asked(pattern, text))
            seemed.append((seconds, method, text))
            if seconds == float("inf"):
                yield Slow(place, pattern.pattern, method, *text.shown, seconds)
                return
    for _, method, text in sorted(seemed, reverse=True)[:SLOWEST]:
        whole, longer = (asked(pattern, text.longer(times)) for times in (LENGTH // SHORT, 16))
        took = cost(pattern, method, whole)
        if took > LIMIT or (took > 1 and cost(pattern, method, longer) > 10 * took):
            yield Slow(place, pattern.pattern, method, *text.shown, took)
            return


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, len(FOUND), TOGETHER))
def test_no_pattern_is_slow_on_hostile_text(first: int) -> None:
    some = list(FOUND.items())[first : first + TOGETHER]
    slow = [found for pattern, place in some for found in slow_texts(pattern, place)]
    assert not slow, "\n".join(map(str, slow))


def test_patterns_are_found_wherever_they_are_held() -> None:
    places = " ".join(FOUND.values())
    for part in ("signatures", "records.parsers", "lint.rules", "endings", "prefixes", "sites"):
        assert part in places
    assert len(FOUND) > 600


@pytest.mark.parametrize(
    "regex",
    [
        r"(a+)+b", r"\d+\.?\d+x", r"\s*step", r"(?:xx?)+y", r"<.*?>", r"a(?:b|[bc]+d?)*e",
        r"(\w+\s?)*:", r"^(?P<k>.*)=(.*),(.*);",
    ],
)  # fmt: skip
def test_a_slow_pattern_is_found(regex: str) -> None:
    assert list(slow_texts(re.compile(regex), "here"))


@pytest.mark.parametrize("regex", [r"\d{1,64}x", r"^\s*step", r"loss: ([^ ]{1,80})$", r"a|b+c?"])
def test_a_pattern_that_is_bounded_is_not(regex: str) -> None:
    assert not list(slow_texts(re.compile(regex), "here"))
