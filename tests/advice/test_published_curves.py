"""Forecasts of published curves; the page of the documentation has the tables."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from tests.advice.published_curves import CURVES, Continued, continued

PAGE = Path(__file__).resolve().parents[2] / "docs/advise.md"
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
        widths = [one.forecast.high / one.forecast.low for one in continued(times)]
        assert statistics.median(widths) < most


def test_the_page_has_the_tables() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for row in map(curve_row, _all()):
        assert row in text, row


def test_the_numbers_in_the_text_of_the_page() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    found = {times: list(continued(times)) for times in MOST}
    held = [sum(one.held for one in own) for own in found.values()]
    assert f"in {held[0]} of 18 forecasts x2, and in {held[1]} of 18 x4" in text
    admitted = [[one for one in own if not one.refused] for own in found.values()]
    assert [len(own) for own in admitted] == [7, 6]
    medians = [100 * statistics.median(abs(one.error) for one in own) for own in admitted]
    assert f"median errors are {medians[0]:.1f} % x2 and {medians[1]:.1f} % x4" in text


def _all() -> list[Continued]:
    return [one for times in MOST for one in continued(times)]


def curve_row(one: Continued) -> str:
    """Return the row of the page for a forecast."""
    low, high = one.forecast.low / one.rate, one.forecast.high / one.rate
    return (
        f"| {one.curve} | x{one.times} | {one.ranks} | {100 * one.error:+.1f} | "
        f"{100 * low - 100:+.0f} to {100 * high - 100:+.0f} | {'no' if one.refused else 'yes'} |"
    )
