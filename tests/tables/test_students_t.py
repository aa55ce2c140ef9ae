"""Student's t, beside SciPy's."""

from __future__ import annotations

import numpy as np
from scipy import stats

from hpc_train.tables.students_t import students_t


def test_students_t_is_that_of_scipy() -> None:
    freedom = np.array([0.7, 1, 2, 4.3, 30, 1e6, np.inf])

    np.testing.assert_allclose(students_t(freedom, 0.95), stats.t.ppf(0.975, freedom), rtol=1e-12)
