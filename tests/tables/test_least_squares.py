"""Least squares with coefficients of 0 or above, beside scipy's NNLS."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from hpc_train.model.scaling_fit import Law
from hpc_train.tables.scaling_fits import basis, solve

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
