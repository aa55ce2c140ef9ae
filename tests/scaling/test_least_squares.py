"""Least squares with coefficients of 0 or above, beside scipy's NNLS."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import nnls

from hpc_train.scaling import points as of
from hpc_train.scaling.scaling_fits import Law, basis, fieller_limits, solve
from hpc_train.submissions.submit import WIDTHS
from tests.scaling.resolution import resolution

LAWS: st.SearchStrategy[Law] = st.sampled_from(["amdahl", "gustafson", "usl"])
SIZES = st.lists(
    st.sampled_from([1, 2, 4, 8, 16, 64, 512, 4096]), min_size=5, max_size=8, unique=True
)


@settings(deadline=None)
@given(SIZES, LAWS, st.integers(0, 2**32 - 1))
def test_the_fit_is_as_good_as_that_of_scipy(sizes: list[int], law: Law, seed: int) -> None:
    chance = np.random.default_rng(seed)
    q = np.sort(np.array(sizes, dtype=np.float64))
    # Also speedups that fall, whose best coefficients without a bound are below 0.
    speedup = q ** chance.uniform(-0.5, 1.5) * chance.uniform(0.7, 1.3, len(q))
    target = speedup if law == "gustafson" else q / speedup
    relative = basis(law, q) / target[:, np.newaxis]
    length = np.linalg.norm(relative, axis=0)
    found = solve(law, q, speedup)
    assert (found.c >= 0).all()
    _, least = nnls(relative / length, np.ones(len(q)))
    assert np.linalg.norm(found.residuals) <= least * (1 + 1e-9) + 1e-9


# NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.


def test_published_quantiles_and_tails() -> None:
    t = of.students_t(np.array([1.0, 4.0, np.nan]), 0.95)
    assert t[:2] == pytest.approx([12.706, 2.776], abs=5e-4)
    assert np.isnan(t[2])
    assert of.f_above(2, 10, 4.103) == pytest.approx(0.05, abs=5e-5)


@pytest.mark.parametrize(("n", "percent"), [(3, 5), (5, 3), (10, 1.9), (20, 1.3)])
def test_what_repetitions_resolve(n: int, percent: float) -> None:
    found = resolution(n)
    assert 100 * found == pytest.approx(percent, abs=0.1)
    assert resolution(n, 0.04) == pytest.approx(2 * found)


def test_the_stored_widths_are_the_computed_ones() -> None:
    assert {n: round(resolution(n), 4) for n in WIDTHS} == WIDTHS


def test_fieller_of_estimates_that_hang_together() -> None:
    a, b, t = 10.0, 5.0, 2.0
    for both in (-0.2, 0.0, 0.2):
        for limit in fieller_limits(a, b, (0.3, 0.2, both), t):
            variance = 0.3 - 2 * limit * both + limit**2 * 0.2
            assert abs(a - limit * b) == pytest.approx(t * variance**0.5)
