"""Nominal 95 % is 95 %: thousands of studies whose truth is known."""

from __future__ import annotations

import time

import numpy as np
import pytest

from hpc_train.tables.confidence_intervals import bootstrap, fieller_limits
from hpc_train.tables.group_reductions import Floats
from tests.tables.arrays import fieller, welch

TRUTH = 4.0


def studies(count: int, n: int, seed: int = 1) -> tuple[Floats, Floats]:
    """Rates of n jobs at two sizes, with 2 % normal noise."""
    random = np.random.default_rng(seed)
    noise = 1 + 0.02 * random.standard_normal((2, count, n))
    return TRUTH * noise[0], noise[1]


@pytest.mark.parametrize("n", [3, 5, 10])
@pytest.mark.parametrize("method", [welch, fieller])
def test_nominal_95_percent_covers_95_percent(method: object, n: int) -> None:
    assert callable(method)
    begin = time.process_time()
    _, low, high = method(*studies(10_000, n), 0.95)
    assert 0.93 <= np.mean((low <= TRUTH) & (high >= TRUTH)) <= 0.98
    assert time.process_time() - begin < 1


def test_of_few_jobs_the_bootstrap_of_means_is_too_narrow() -> None:
    _, low, high = bootstrap(*studies(300, 3), 0.95, seed=1)
    assert np.mean((low <= TRUTH) & (high >= TRUTH)) < 0.88


def test_a_seed_repeats_its_interval_and_another_does_not() -> None:
    a, b = (side[0] for side in studies(1, 20))
    assert bootstrap(a, b, 0.95) == bootstrap(a, b, 0.95)
    assert bootstrap(a, b, 0.95)[1:] != bootstrap(a, b, 0.95, seed=2)[1:]


def test_fieller_agrees_with_welch_where_both_are_narrow() -> None:
    a, b = (side[0] for side in studies(1, 10))
    np.testing.assert_allclose(fieller(a, b, 0.95), welch(a, b, 0.95), rtol=1e-3)


def test_fieller_by_hand() -> None:
    # mean 10 and 5, variance of the means 1/3 and 1/12, v = 4 as R^2/12 = 1/3: t = 2.7764.
    value, low, high = fieller(np.array([9.0, 10.0, 11.0]), np.array([4.5, 5.0, 5.5]), 0.95)
    assert value == 2
    for limit in (low, high):
        assert abs(10 - 5 * limit) == pytest.approx(2.7764 * (1 / 3 + limit**2 / 12) ** 0.5, 1e-4)
    assert low < 2 < high


def test_fieller_of_estimates_that_hang_together() -> None:
    a, b, t = 10.0, 5.0, 2.0
    for both in (-0.2, 0.0, 0.2):
        for limit in fieller_limits(a, b, (0.3, 0.2, both), t):
            variance = 0.3 - 2 * limit * both + limit**2 * 0.2
            assert abs(a - limit * b) == pytest.approx(t * variance**0.5)


def test_fieller_without_limits() -> None:
    single = fieller(np.array([4.0]), np.array([2.0, 2.1]), 0.95)
    near_zero = fieller(np.array([1.0, 2.0]), np.array([0.001, 9.0]), 0.95)
    assert np.isnan([*single[1:], *near_zero[1:]]).all()
    same = fieller(np.array([4e9, 4e9]), np.array([2e9, 2e9]), 0.95)
    assert float(same[0]) == 2.0
    assert np.isnan(same[1:]).all()
