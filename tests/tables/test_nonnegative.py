"""Least squares without negative coefficients, beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

from hpc_train.tables.nonnegative import nonnegative_least_squares
from hpc_train.tables.students_t import students_t


@pytest.mark.parametrize("columns", [2, 3])
def test_the_solution_is_that_of_scipy(columns: int) -> None:
    chance = np.random.default_rng(7)
    at_zero = 0
    for _ in range(300):
        matrix, target = chance.normal(size=(6, columns)), chance.normal(size=6)
        found, known = nonnegative_least_squares(matrix, target), optimize.nnls(matrix, target)[0]
        np.testing.assert_allclose(found, known, rtol=1e-9, atol=1e-12)
        at_zero += int((known == 0).any())
    assert 100 < at_zero < 300


def test_columns_that_point_away_get_nothing() -> None:
    found = nonnegative_least_squares(-np.ones((4, 2)), np.ones(4))

    assert found.tolist() == [0, 0]


def test_students_t_is_that_of_scipy() -> None:
    freedom = np.array([0.7, 1, 2, 4.3, 30, 1e6, np.inf])

    np.testing.assert_allclose(students_t(freedom, 0.95), stats.t.ppf(0.975, freedom), rtol=1e-12)
