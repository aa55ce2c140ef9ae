"""Forecasts of published curves; the page of the documentation has the tables."""

from __future__ import annotations

import statistics

import pytest

from tests.advice.published_curves import CURVES, continued

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
