from math import exp

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hpc_train.scaling.points import harmonic_means, means
from tests.scaling.arrays import along_axis, ratio_interval

samples = st.lists(st.floats(1, 100), min_size=2, max_size=8).filter(
    lambda values: max(values) > min(values) * (1 + 1e-9)
)


@settings(deadline=None, max_examples=50)
@given(samples, samples)
def test_the_unit_does_not_matter(a: list[float], b: list[float]) -> None:
    scaled = ratio_interval([x * 1e9 for x in a], [x * 1e9 for x in b])
    assert scaled == pytest.approx(ratio_interval(a, b), rel=1e-6)


def test_neither_one_run_nor_equal_runs_have_an_interval() -> None:
    single = ratio_interval([4.0], [2.0, 2.0])
    assert single.value == pytest.approx(2.0)
    assert single[1:] == (None, None)
    equal = ratio_interval([4.0, 4.0], [2.0, 2.0])
    assert equal.value == pytest.approx(2.0)
    assert equal[1:] == (None, None)


@given(st.floats(1e-99, 1e99), st.integers(2, 30), st.integers(2, 30))
def test_equal_values_have_no_interval_whatever_their_rounding(
    value: float, first: int, second: int
) -> None:
    assert ratio_interval([value] * first, [3 * value] * second)[1:] == (None, None)
    own = along_axis(np.full(first, value))
    for found in (means(own, 0.95), harmonic_means(own, 0.95)):
        assert np.isnan(found.low)
        assert np.isnan(found.high)


def test_rates_are_averaged_over_equal_work() -> None:
    times = along_axis(1 / np.array([1.0, 3.0]))
    value, low, high = harmonic_means(times, 0.95)
    assert value == pytest.approx(1.5)
    # Mean time 2/3, its error 1/3, so that ln(mean) has the error 1/2; t = 12.7062 for n = 2.
    assert (low, high) == pytest.approx((1.5 / exp(6.3531), 1.5 * exp(6.3531)), rel=1e-4)
    assert means(times, 0.95) == pytest.approx((1 / value, 1 / high, 1 / low), rel=1e-12)


def test_runs_that_nothing_relates_have_no_upper_limit() -> None:
    value, low, high = ratio_interval([1e90, 1e-90], [1.0, 1.0])
    assert value == pytest.approx(1.0)
    assert low == 0.0
    assert high is None
