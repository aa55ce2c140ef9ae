"""No regular expression of the package is slow, whatever the text and however it is asked.

What 20,000 characters may cost is counted in runs of a yardstick on this machine, and in CPU time:
50 ms where the yardstick takes 5 ms. What costs more than a tenth of it must grow with the length
of the text and not with its square. `python -m tests.bench.bench_patterns` prints the slowest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import pytest

from hpc_train.records.signatures.catalogue import packaged
from tests.project.compiled_patterns import patterns
from tests.project.hostile_texts import Text, hostile_texts
from tests.project.match_time import LENGTH, SHORT, asked, seconds_of, slowest, yardstick

# All modules are imported, also that of torch's ZeroRedundancyOptimizer.
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
]
LIMIT = 10.0
ROUNDS, FAR = 4, 10
# Of a text four times as long: 4 is in proportion and 16 the square. What grows at most sixfold
# from a short text has so small a share of the square that a longer one grows less than tenfold.
GROWTH, GROWTH_OF_SHORT = 10.0, 6.0
# Tests among which the patterns are dealt: only the process that runs one has to find them all.
PARTS = 40
# Characters, and the time of a search that is looked at again with more of them; of four times as
# many, a search in proportion takes 4 times as long, and one of the square 16 times.
SCREENED, SCREEN_S, SCREEN_GROWTH, SCREEN_MOST = 400, 4e-4, 8.0, 0.5


class Slow(NamedTuple):
    """A text on which a pattern took too long, in yardsticks."""

    place: str
    pattern: str
    method: str
    start: str
    end: str
    cost: float


@cache
def found() -> tuple[tuple[re.Pattern[Any], str], ...]:
    return tuple(patterns().items())


def cost(
    pattern: re.Pattern[Any], method: str, text: str | bytes, enough: float, rounds: int = ROUNDS
) -> float:
    """Return the least of some rounds, each beside the yardstick; the first that is at most enough.

    More rounds could only lower it, which decides nothing any more, nor where it is far too much.
    """
    least = float("inf")
    for _ in range(rounds):
        took = seconds_of(pattern, method, text)
        if took == float("inf"):
            return took
        least = min(least, took / yardstick())
        if least <= enough or least > FAR * enough:
            break
    return least


@cache
def shortest_yardstick() -> float:
    return min(yardstick() for _ in range(ROUNDS))


def grows_with_the_square(pattern: re.Pattern[Any], method: str, text: Text, took: float) -> bool:
    """Whether a longer text costs too much more than the whole one, which took `took`."""
    # One measurement beside other processes may be twice too high, and so hide the growth.
    took = min(took, cost(pattern, method, asked(pattern, text.longer(LENGTH // SHORT)), 1.0))
    short = cost(pattern, method, asked(pattern, text), took / GROWTH_OF_SHORT / 2, 2)
    if took <= GROWTH_OF_SHORT * short:
        return False
    longer = asked(pattern, text.longer((LENGTH // SHORT) ** 2))
    return cost(pattern, method, longer, GROWTH * took) > GROWTH * took


def slow_texts(pattern: re.Pattern[Any], place: str) -> Iterator[Slow]:
    """Yield the first text on which a pattern takes too long, if there is one."""
    for seconds, method, text in slowest(pattern):
        # Even with the square of the length it would stay below the yardstick.
        if seconds * (LENGTH / SHORT) ** 2 < shortest_yardstick() / 2:
            continue
        whole = asked(pattern, text.longer(LENGTH // SHORT))
        took = seconds if seconds == float("inf") else cost(pattern, method, whole, LIMIT / 2)
        if took > LIMIT or (took > 1 and grows_with_the_square(pattern, method, text, took)):
            yield Slow(place, pattern.pattern, method, *text.shown, took)
            return


def least(pattern: re.Pattern[Any], text: Text) -> float:
    return min(seconds_of(pattern, "search", asked(pattern, text), SCREEN_MOST) for _ in range(3))


def seems_slow(pattern: re.Pattern[Any]) -> bool:
    """Whether a search takes long in 400 characters and grows with the square of their number."""
    for text in islice(hostile_texts(pattern, SCREENED), 0, None, 2):
        if seconds_of(pattern, "search", asked(pattern, text)) < SCREEN_S:
            continue
        times = [least(pattern, text.longer(times)) for times in (1, 4)]
        if times[0] < SCREEN_S or times[1] < SCREEN_GROWTH * times[0]:
            continue
        if times[1] == float("inf") or least(pattern, text.longer(16)) > SCREEN_GROWTH * times[1]:
            return True
    return False


def test_no_pattern_is_slow_on_short_hostile_text() -> None:
    """The next tests measure with care, for minutes."""
    assert [(place, one.pattern) for one, place in found() if seems_slow(one)] == []


@pytest.mark.parametrize("regex", [r"<.*?>", r"\d+\.?\d+x"])
def test_a_slow_pattern_seems_slow(regex: str) -> None:
    assert seems_slow(re.compile(regex))


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_no_pattern_is_slow_on_hostile_text(part: int) -> None:
    slow = [text for one, place in found()[part::PARTS] for text in slow_texts(one, place)]
    assert not slow, "\n".join(map(str, slow))


def test_patterns_are_found_wherever_they_are_held() -> None:
    places = " ".join(place for _, place in found())
    for part in (
        "records.parsers",
        "records.parsing",
        "lint.rules",
        "end_markers",
        "records.line._PREFIX",
        "sites",
    ):
        assert part in places
    assert len(found()) > 600
    assert {one.compiled for one in packaged()} <= {pattern for pattern, _ in found()}


@pytest.mark.long
@pytest.mark.parametrize(
    "regex",
    [
        r"(a+)+b", r"\d+\.?\d+x", r"<.*?>", r"a(?:b|[bc]+d?)*e",
    ],
)  # fmt: skip
def test_a_slow_pattern_is_found(regex: str) -> None:
    assert list(slow_texts(re.compile(regex), "here"))
