"""Nominal 95 % is 95 %: thousands of studies whose truth is known."""

from __future__ import annotations

import time

import numpy as np
import pytest

from hpc_train.scaling.record_arrays import Floats
from hpc_train.scaling.scaling_fits import fieller_limits
from tests.scaling.arrays import welch

TRUTH = 4.0


def studies(count: int, n: int, seed: int = 1) -> tuple[Floats, Floats]:
    """Rates of n jobs at two sizes, with 2 % normal noise."""
    random = np.random.default_rng(seed)
    noise = 1 + 0.02 * random.standard_normal((2, count, n))
    return TRUTH * noise[0], noise[1]


@pytest.mark.parametrize("n", [3, 5, 10])
def test_nominal_95_percent_covers_95_percent(n: int) -> None:
    begin = time.process_time()
    _, low, high = welch(*studies(10_000, n), 0.95)
    assert 0.93 <= np.mean((low <= TRUTH) & (high >= TRUTH)) <= 0.98
    assert time.process_time() - begin < 1


def test_fieller_of_estimates_that_hang_together() -> None:
    a, b, t = 10.0, 5.0, 2.0
    for both in (-0.2, 0.0, 0.2):
        for limit in fieller_limits(a, b, (0.3, 0.2, both), t):
            variance = 0.3 - 2 * limit * both + limit**2 * 0.2
            assert abs(a - limit * b) == pytest.approx(t * variance**0.5)
