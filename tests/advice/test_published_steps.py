"""Forecasts of published curves; the page of the documentation has the tables."""

import statistics
from pathlib import Path

import pytest

from tests.advice.published_curves import CURVES, continued
from tests.advice.published_steps import compared, compared_with_fewer

# Factor -> the largest median error.
MOST = {2: 0.02, 4: 0.04}


@pytest.mark.parametrize("times", MOST)
def test_the_median_error_is_small_and_the_band_holds_the_rate(times: int) -> None:
    found = list(continued(times))
    assert len(found) == len(CURVES) == 18
    assert statistics.median(abs(one.error) for one in found) <= MOST[times]
    assert sum(one.held for one in found) / len(found) >= 0.9


def test_a_band_says_something() -> None:
    """A wide one would always hold."""
    for times, most in ((2, 1.25), (4, 1.5)):
        widths = [one.forecast[2] / one.forecast[1] for one in continued(times)]
        assert statistics.median(widths) < most


PAGE = Path(__file__).resolve().parents[2] / "docs/advise.md"
LEAST = 0.95


def test_published_steps_are_within_their_bounds() -> None:
    found = list(compared())
    assert len(found) >= 34
    assert sum(one.held for one in found) / len(found) >= LEAST


def test_the_bounds_say_something() -> None:
    """Range that are far apart would always hold."""
    widths = sorted((one.bounds.high or 0) / one.bounds.low for one in compared())
    assert widths[len(widths) // 2] < 1.25
    assert widths[-1] < 2


def test_published_steps_of_fewer_gpus_are_within_their_bounds() -> None:
    """The measured step also communicated and waited, which one of fewer GPUs does less."""
    found = list(compared_with_fewer())
    held = sum(one.held for one in found)
    assert held / len(found) >= LEAST
    widths = sorted((one.bounds.high or 0) / one.bounds.low for one in found)
    assert widths[len(widths) // 2] < 1.25
    assert widths[-1] < 3
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"{held} of {len(found)} steps are within their bounds" in text
