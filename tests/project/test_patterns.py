"""No regular expression of the package takes the square of the length of a hostile text."""

from __future__ import annotations

import re
from functools import cache
from itertools import islice
from typing import Any

import pytest

from hpc_train.diagnosis.signatures import packaged
from tests.project.compiled_patterns import patterns
from tests.project.hostile_texts import Text, hostile_texts
from tests.project.match_time import asked, seconds_of

# All modules are imported, also that of torch's ZeroRedundancyOptimizer.
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
]
# Characters, and the time of a search that is looked at again with more of them; of four times as
# many, a search in proportion takes 4 times as long, and one of the square 16 times.
SCREENED, SCREEN_S, SCREEN_GROWTH, SCREEN_MOST = 400, 4e-4, 8.0, 0.5


@cache
def found() -> tuple[tuple[re.Pattern[Any], str], ...]:
    return tuple(patterns().items())


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


def test_no_pattern_is_slow_on_hostile_text() -> None:
    assert [(place, one.pattern) for one, place in found() if seems_slow(one)] == []


@pytest.mark.parametrize("regex", [r"(a+)+b", r"\d+\.?\d+x", r"<.*?>", r"a(?:b|[bc]+d?)*e"])
def test_a_slow_pattern_seems_slow(regex: str) -> None:
    assert seems_slow(re.compile(regex))


def test_patterns_are_found_wherever_they_are_held() -> None:
    places = " ".join(place for _, place in found())
    for part in (
        "logs.formats",
        "lint.rules",
        "data.Training completed",
        "logs.line._PREFIX",
        "sites",
    ):
        assert part in places
    assert len(found()) > 600
    assert {one.compiled for one in packaged()} <= {pattern for pattern, _ in found()}
