"""Measured peaks of the resident set are within the bounds, and near the middle of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.advice.measured_memory import PEAKS, RETURNED_PEAKS, Peak, predicted

PAGE = Path(__file__).parents[2] / "docs" / "advise.md"
ERROR = 0.1


@pytest.mark.parametrize("peak", PEAKS, ids=lambda peak: peak.strategy)
def test_the_measured_peak_is_as_the_formulas_have_it(peak: Peak) -> None:
    found = predicted(*peak[:3])
    assert found.high is not None
    assert found.low <= peak.gib <= found.high
    middle = (found.low + found.high) / 2
    assert middle == pytest.approx(peak.gib, rel=ERROR)


@pytest.mark.parametrize("peak", RETURNED_PEAKS, ids=lambda peak: peak.strategy)
def test_a_peak_without_freed_memory_is_within_the_bounds(peak: Peak) -> None:
    found = predicted(*peak[:3])
    assert found.high is not None
    assert found.low <= peak.gib <= found.high
    text = PAGE.read_text(encoding="utf-8")
    assert f"{peak.gib:.2f} GiB" in text
