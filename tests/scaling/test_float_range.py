"""Ratios and intervals over all floats: right, or missing; never a warning."""

from fractions import Fraction
from math import isnan

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hpc_train.scaling.points import divided, harmonic_means, means, welch
from hpc_train.scaling.record_arrays import LEAST, MOST, moments
from hpc_train.scaling.speedup import karp_flatt


@settings(deadline=None)
@given(st.floats(LEAST, MOST), st.floats(1.0001, 1e9))
def test_the_serial_share_is_right_or_missing(speedup: float, q: float) -> None:
    s, exact = Fraction(speedup), Fraction(q)
    true = (1 / s - 1 / exact) / (1 - 1 / exact)
    found = karp_flatt(np.float64(speedup), np.float64(q))
    assert isnan(found) or found == pytest.approx(float(true), rel=1e-14)


sizes = st.lists(st.floats(LEAST, MOST), min_size=1, max_size=6)


@settings(deadline=None)
@given(sizes, sizes, st.floats(0.5, 0.9999), st.floats(1e-9, 1e9))
def test_the_limits_of_many_points_hold_their_values(
    a: list[float], b: list[float], confidence: float, q: float
) -> None:
    every = [np.zeros(len(values), dtype=np.int64) for values in (a, b)]
    plain = [moments(np.array(x), at, 1) for x, at in zip((a, b), every, strict=True)]
    logs = [moments(np.log(x), at, 1) for x, at in zip((a, b), every, strict=True)]
    found = [
        welch(logs[0], logs[1], confidence),
        means(plain[0], confidence),
        harmonic_means(plain[0], confidence),
    ]
    for limits in (*found, *(divided(one, np.array([q])) for one in found)):
        value, low, high = (float(one[0]) for one in limits)
        in_order(value, *(None if isnan(one) else one for one in (low, high)))


def in_order(value: float, low: float | None, high: float | None) -> None:
    """Check that limits are around their value, but for the rounding of a logarithm of 1e100."""
    if isnan(value):
        assert low is None
        assert high is None
        return
    assert LEAST * (1 - 1e-9) <= value <= MOST * (1 + 1e-9)
    assert low is None or low <= value * (1 + 1e-12)
    assert high is None or value * (1 - 1e-12) <= high <= MOST
