"""Nominal 95 % is 95 %: thousands of studies whose truth is known."""

from __future__ import annotations

import time

import numpy as np
import pytest

from hpc_train.errors import ReportError
from hpc_train.tables.intervals import (
    Floats,
    bootstrap,
    bootstrap_interval,
    fieller,
    fieller_interval,
    fieller_limits,
    ratio_interval,
    welch_on_logs,
)

TRUTH = 4.0


def studies(count: int, n: int, seed: int = 1) -> tuple[Floats, Floats]:
    """Rates of n jobs at two sizes, with 2 % normal noise."""
    random = np.random.default_rng(seed)
    noise = 1 + 0.02 * random.standard_normal((2, count, n))
    return TRUTH * noise[0], noise[1]


@pytest.mark.parametrize("n", [3, 5, 10])
@pytest.mark.parametrize("method", [welch_on_logs, fieller])
def test_nominal_95_percent_covers_95_percent(method: object, n: int) -> None:
    assert callable(method)
    begin = time.process_time()
    _, low, high = method(*studies(10_000, n), 0.95)
    assert 0.93 <= np.mean((low <= TRUTH) & (high >= TRUTH)) <= 0.98
    assert time.process_time() - begin < 1


def test_of_few_jobs_the_bootstrap_of_means_is_too_narrow() -> None:
    _, low, high = bootstrap(*studies(300, 3), "mean", 0.95, seed=1)
    assert np.mean((low <= TRUTH) & (high >= TRUTH)) < 0.88
    _, low, high = bootstrap(*studies(300, 5), "median", 0.95, seed=1)
    assert 0.93 <= np.mean((low <= TRUTH) & (high >= TRUTH)) <= 0.99


def test_where_the_bootstrap_is_refused() -> None:
    a, b = (side[0].tolist() for side in studies(1, 20))
    with pytest.raises(ReportError, match="of means takes 20 jobs on each side, there are 19"):
        bootstrap_interval(a, b[:19], "mean")
    with pytest.raises(ReportError, match="of medians takes 5 jobs on each side, there are 4"):
        bootstrap_interval(a, b[:4])
    assert bootstrap_interval(a, b, "mean").value == pytest.approx(np.mean(a) / np.mean(b))
    assert bootstrap_interval(a[:5], b[:5]).value == pytest.approx(
        np.median(a[:5]) / np.median(b[:5])
    )


def test_a_seed_repeats_its_interval_and_another_does_not() -> None:
    a, b = (side[0].tolist() for side in studies(1, 20))
    assert bootstrap_interval(a, b) == bootstrap_interval(a, b)
    assert bootstrap_interval(a, b, "mean") != bootstrap_interval(a, b, "mean", seed=2)


def test_fieller_agrees_with_welch_where_both_are_narrow() -> None:
    a, b = (side[0].tolist() for side in studies(1, 10))
    assert fieller_interval(a, b) == pytest.approx(ratio_interval(a, b), rel=1e-3)


def test_fieller_by_hand() -> None:
    # mean 10 and 5, variance of the means 1/3 and 1/12, v = 4 as R^2/12 = 1/3: t = 2.7764.
    value, low, high = fieller_interval([9.0, 10.0, 11.0], [4.5, 5.0, 5.5])
    assert value == 2
    for limit in (low, high):
        assert limit is not None
        assert abs(10 - 5 * limit) == pytest.approx(2.7764 * (1 / 3 + limit**2 / 12) ** 0.5, 1e-4)
    assert low is not None
    assert high is not None
    assert low < 2 < high


def test_fieller_of_estimates_that_hang_together() -> None:
    a, b, t = 10.0, 5.0, 2.0
    for both in (-0.2, 0.0, 0.2):
        for limit in fieller_limits(a, b, (0.3, 0.2, both), t):
            variance = 0.3 - 2 * limit * both + limit**2 * 0.2
            assert abs(a - limit * b) == pytest.approx(t * variance**0.5)


def test_fieller_without_limits() -> None:
    assert fieller_interval([4.0], [2.0, 2.1])[1:] == (None, None)
    assert fieller_interval([1.0, 2.0], [0.001, 9.0])[1:] == (None, None)
    assert fieller_interval([4e9, 4e9], [2e9, 2e9]) == (2.0, 2.0, 2.0)
    with pytest.raises(ReportError, match="positive"):
        fieller_interval([1.0], [0.0])
