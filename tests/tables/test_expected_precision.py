from __future__ import annotations

import pytest

from hpc_train.tables.expected_precision import WIDTHS, expected_width, fit_needs
from tests.tables.resolution import resolution


@pytest.mark.parametrize(("n", "percent"), [(3, 5), (5, 3), (10, 1.9), (20, 1.3)])
def test_what_repetitions_resolve(n: int, percent: float) -> None:
    found = resolution(n)
    assert 100 * found == pytest.approx(percent, abs=0.1)
    assert resolution(n, 0.04) == pytest.approx(2 * found)


def test_the_stored_widths_are_the_computed_ones() -> None:
    assert {n: round(resolution(n), 4) for n in WIDTHS} == WIDTHS


def test_beyond_the_stored_widths() -> None:
    assert expected_width(40) == pytest.approx(resolution(40), rel=0.02)
    assert expected_width(1) is None


def test_which_laws_need_more_sizes() -> None:
    assert fit_needs(2) == {"amdahl": 3, "gustafson": 3, "usl": 6}
    assert fit_needs(3) == fit_needs(5) == {"usl": 6}
    assert fit_needs(6) == {}
