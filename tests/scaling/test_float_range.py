"""Every law, ratio and interval over all floats: right, or missing; never a warning."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import inf, isfinite, isnan, nan

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from hpc_train.base.errors import ReportError
from hpc_train.scaling import efficiency_and_cost_formulas as formulas
from hpc_train.scaling.confidence_intervals import (
    IntervalArrays,
    divided,
    harmonic_means,
    means,
    ratio_interval,
    welch,
)
from hpc_train.scaling.group_reductions import LEAST, MOST, moments
from hpc_train.scaling.time_to_accuracy_by_point import (
    score,
    statistical_efficiency,
    time_to_accuracy,
)

# Subnormal, the smallest normal, beside the bounds, beside 1, the largest; no numbers.
EXTREMES = (
    -inf, -1.0, -5e-324, -0.0, 0.0, 5e-324, 2.3e-308, 9e-101, 1e-100, 1 - 2**-53, 1.0,
    1 + 2**-52, 2.0, 1e100, 1.1e100, 1.7976931348623157e308, inf, nan,
)  # fmt: skip
anything = st.floats() | st.sampled_from(EXTREMES)
shares = st.floats(0, 1)

Exact = Callable[..., Fraction]
# Each with the number of its arguments, and the same in fractions, which neither round nor end.
FORMULAS: dict[str, tuple[Callable[..., float], int, Exact]] = {
    "doubling_efficiency": (formulas.doubling_efficiency, 2, lambda s, doubled: doubled / (2 * s)),
    "karp_flatt": (formulas.karp_flatt, 2, lambda s, q: (1 / s - 1 / q) / (1 - 1 / q)),
    "hours": (formulas.hours, 2, lambda p, t: p * t / 3600),
    "hours_per_million": (formulas.hours_per_million, 2, lambda p, x: p * 1_000_000 / 3600 / x),
}


def right_or_missing(found: float, values: Sequence[float], exact: Exact) -> None:
    """Check a result against the same with fractions; what is NaN has to be beyond all sizes."""
    if not all(map(isfinite, values)):
        assert isnan(found)
        return
    true = exact(*map(Fraction, values))
    if isnan(found):
        given_or_true = [abs(value) for value in (*map(Fraction, values), true) if value]
        assert min(given_or_true) < LEAST * 1.000001 or max(given_or_true) > MOST * 0.999999
    else:
        # Four operations, each rounded by half a unit of the 53rd bit, and their amplification by
        # the one subtraction, of numbers that are given exactly.
        assert found == pytest.approx(float(true), rel=1e-14)


def of(name: str, values: Sequence[float]) -> None:
    formula, _, exact = FORMULAS[name]
    try:
        found = formula(*values)
    except ReportError:
        # What is not defined is refused by name; it is never known to a caller as a number.
        assert any(value <= 1 or value == inf for value in values)
        return
    assert type(found) is float
    right_or_missing(found, values, exact)
    together = formula(*(np.array([value]) for value in values))
    assert np.array_equal(np.asarray(together), [found], equal_nan=True)


@pytest.mark.parametrize("name", FORMULAS)
@settings(deadline=None)
@given(data=st.data())
def test_a_formula_is_right_or_missing(name: str, data: st.DataObject) -> None:
    count = FORMULAS[name][1]
    of(name, data.draw(st.lists(anything, min_size=count, max_size=count)))


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_at_the_ends_of_the_range(name: str) -> None:
    for values in itertools.product(EXTREMES, repeat=min(FORMULAS[name][1], 2)):
        of(name, [*values, *([3.0] * (FORMULAS[name][1] - len(values)))])


def test_a_speedup_of_the_smallest_float_has_no_serial_share() -> None:
    assert isnan(formulas.karp_flatt(5e-324, 2.0))


samples = st.lists(anything, min_size=1, max_size=6)
sizes = st.lists(st.floats(LEAST, MOST), min_size=1, max_size=6)


@settings(deadline=None)
@given(samples | sizes, samples | sizes, st.floats(0.5, 0.9999))
@example([1e-100, 1e100], [1e100, 1e-100], 0.95)
@example([5e-324], [1e308], 0.95)
def test_an_interval_holds_its_value(a: list[float], b: list[float], confidence: float) -> None:
    try:
        in_order(*ratio_interval(a, b, confidence))
    except ReportError:
        assert not all(LEAST <= value <= MOST for value in (*a, *b))


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


@given(anything, anything, anything)
def test_time_to_a_quality(samples: float, rate: float, start: float) -> None:
    try:
        found = time_to_accuracy(samples, rate, start)
    except ReportError:
        found = None
    assert found is None or 0 <= found <= MOST
    try:
        found = statistical_efficiency(samples, rate)
    except ReportError:
        found = None
    assert found is None or LEAST <= found <= MOST


@given(st.lists(st.none() | anything, max_size=12))
@example([1e308] * 3)
@example([1e100] * 40)
def test_an_mlperf_score_is_among_its_times(times: list[float | None]) -> None:
    try:
        found = score(times)
    except ReportError:
        return
    known = [time for time in times if time is not None]
    assert found == inf or min(known) * (1 - 1e-15) <= found <= max(known) * (1 + 1e-15)


def test_a_shared_limit_below_all_sizes_is_0() -> None:
    found = divided(
        IntervalArrays(*(np.array([x]) for x in (2.0, 1e-250, 1e300))), np.array([1e-9])
    )
    assert [float(one[0]) for one in found[:2]] == [pytest.approx(2e9), 0.0]
    assert isnan(float(found.high[0]))
