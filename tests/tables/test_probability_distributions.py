"""Distributions: published quantiles, and no import of scipy where none is computed."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from hpc_train.tables import probability_distributions as of

# NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.


def test_published_quantiles_and_tails() -> None:
    t = of.student_quantile(np.array([1.0, 4.0, np.nan]), 0.975)
    assert t[:2] == pytest.approx([12.706, 2.776], abs=5e-4)
    assert np.isnan(t[2])
    assert of.f_above(2, 10, 4.103) == pytest.approx(0.05, abs=5e-5)


def test_runs_without_repetitions_need_no_scipy() -> None:
    code = (
        "import sys, numpy as np; from hpc_train.tables.confidence_intervals import students_t; "
        "assert np.isnan(students_t(np.full((2, 1), np.nan), np.full(3, 0.95))).all(); "
        "assert 'scipy' not in sys.modules, 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
