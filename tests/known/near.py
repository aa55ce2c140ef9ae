"""Numbers of the product against those of the manifest: how far apart they may be."""

from collections.abc import Sequence

import pytest

COUNTS = 0.02
TIMES = 0.005
# Minutes to train, as MLPerf publishes them.
MINUTES = 0.001


def same_count(found: float, expected: float) -> None:
    """Assert that two counts are within 2 %."""
    assert found == pytest.approx(expected, rel=COUNTS, abs=0)


def same_value(found: float, expected: float) -> None:
    """Assert that two times or rates are within 0.5 %."""
    assert found == pytest.approx(expected, rel=TIMES, abs=0)


def same_values(found: Sequence[float], expected: Sequence[float]) -> None:
    """Assert that two series are as long as one another, and each value is within 0.5 %."""
    assert list(found) == pytest.approx(list(expected), rel=TIMES, abs=0)


def same_minutes(found_s: float | None, expected: float) -> None:
    """Assert that seconds are those minutes."""
    assert found_s is not None
    assert found_s / 60 == pytest.approx(expected, abs=MINUTES)
