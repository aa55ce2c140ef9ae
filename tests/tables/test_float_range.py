"""Every law, ratio and interval over all floats: right, or missing; never a warning."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import inf, isfinite, isnan, nan

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hpc_train.errors import ReportError
from hpc_train.tables import cost, laws
from hpc_train.tables.accuracy import statistical_efficiency, time_to_accuracy
from hpc_train.tables.intervals import (
    Interval,
    bootstrap_interval,
    fieller_interval,
    harmonic_interval,
    ratio_interval,
)
from hpc_train.tables.magnitudes import LEAST, MOST
from hpc_train.tables.mlperf import score
from hpc_train.tables.moments import moments
from hpc_train.tables.ratios import Limits, fiellers, harmonic_means, means, ratios, shared

# Subnormal, the smallest normal, beside the bounds, beside 1, the largest; no numbers.
EXTREMES = (
    -inf, -1.0, -5e-324, -0.0, 0.0, 5e-324, 2.3e-308, 9e-101, 1e-100, 1 - 2**-53, 1.0,
    1 + 2**-52, 2.0, 1e100, 1.1e100, 1.7976931348623157e308, inf, nan,
)  # fmt: skip
anything = st.floats() | st.sampled_from(EXTREMES)
shares = st.floats(0, 1)

Exact = Callable[..., Fraction]
# Each with the number of its arguments, and the same in fractions, which neither round nor end.
LAWS: dict[str, tuple[Callable[..., float], int, Exact]] = {
    "speedup": (laws.speedup, 2, lambda x, y: x / y),
    "speedup_of_times": (laws.speedup_of_times, 2, lambda t, base: base / t),
    "efficiency": (laws.efficiency, 2, lambda s, q: s / q),
    "weak_efficiency": (laws.weak_efficiency, 2, lambda t, base: base / t),
    "scaled_speedup": (laws.scaled_speedup, 2, lambda e, q: e * q),
    "doubling_efficiency": (laws.doubling_efficiency, 2, lambda s, doubled: doubled / (2 * s)),
    "karp_flatt": (laws.karp_flatt, 2, lambda s, q: (1 / s - 1 / q) / (1 - 1 / q)),
    "load_balance": (laws.load_balance, 2, lambda mean, most: mean / most),
    "mfu": (laws.mfu, 4, lambda x, flops, gpus, peak: x * flops / (gpus * peak)),
    "hours": (cost.hours, 2, lambda p, t: p * t / 3600),
    "hours_per_million": (cost.hours_per_million, 2, lambda p, x: p * 1_000_000 / 3600 / x),
    "price_per_million": (cost.price_per_million, 2, lambda hours, price: hours * price),
    "kwh": (cost.kwh, 1, lambda joules: joules / 3_600_000),
    "kwh_per_million": (cost.kwh_per_million, 2, lambda e, n: e / 3_600_000 * 1_000_000 / n),
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
    law, _, exact = LAWS[name]
    try:
        found = law(*values)
    except ReportError:
        # What is not defined is refused by name; it is never known to a caller as a number.
        assert any(value <= 1 or value == inf for value in values)
        return
    assert type(found) is float
    right_or_missing(found, values, exact)
    together = law(*(np.array([value]) for value in values))
    assert np.array_equal(np.asarray(together), [found], equal_nan=True)


@pytest.mark.parametrize("name", LAWS)
@settings(deadline=None)
@given(data=st.data())
def test_a_law_is_right_or_missing(name: str, data: st.DataObject) -> None:
    count = LAWS[name][1]
    of(name, data.draw(st.lists(anything, min_size=count, max_size=count)))


@pytest.mark.parametrize("name", LAWS)
def test_a_law_at_the_ends_of_the_range(name: str) -> None:
    for values in itertools.product(EXTREMES, repeat=min(LAWS[name][1], 2)):
        of(name, [*values, *([3.0] * (LAWS[name][1] - len(values)))])


def test_a_speedup_of_the_smallest_float_has_no_serial_share() -> None:
    assert isnan(laws.karp_flatt(5e-324, 2.0))
    assert laws.karp_flatt_interval(Interval(1.5, 5e-324, 1.9), 2.0).high is None


@given(st.floats(1, 1e100), shares)
@example(1e100, 1.0)
@example(1.0, 0.0)
def test_amdahl_and_gustafson_are_right_on_any_machine(q: float, f: float) -> None:
    exact_q, exact_f = Fraction(q), Fraction(f)
    amdahl = 1 / (exact_f + (1 - exact_f) / exact_q)
    right_or_missing(laws.amdahl(q, f), [q], lambda _: amdahl)
    right_or_missing(laws.gustafson(q, f), [q], lambda _: exact_q - exact_f * (exact_q - 1))


@given(anything, anything, anything, anything)
@example(0.5, 2.0, 0.0, 1.0)
@example(1e100, 1e308, 1e308, 1.0)
def test_usl_is_above_0_or_missing(q: float, a: float, b: float, scale: float) -> None:
    try:
        found, peak = laws.usl(q, a, b, scale), laws.usl_peak(a, b)
    except ReportError:
        return
    assert isnan(found) or LEAST <= found <= MOST
    assert peak is None or 1 <= peak < MOST


@given(st.floats(1, 1e50), st.floats(0, 1e10), st.floats(0, 1e10))
def test_usl_is_right(q: float, a: float, b: float) -> None:
    exact = Fraction(q) / (
        1 + Fraction(a) * (Fraction(q) - 1) + Fraction(b) * Fraction(q) * (Fraction(q) - 1)
    )
    right_or_missing(laws.usl(q, a, b), [q], lambda _: exact)


@given(anything, anything, anything, anything)
def test_karp_flatt_limits_are_numbers_or_none(
    value: float, low: float, high: float, q: float
) -> None:
    try:
        found = laws.karp_flatt_interval(Interval(value, low, high), q)
    except ReportError:
        return
    assert all(limit is None or isfinite(limit) for limit in found[1:])


samples = st.lists(anything, min_size=1, max_size=6)
sizes = st.lists(st.floats(LEAST, MOST), min_size=1, max_size=6)


@settings(deadline=None)
@given(samples | sizes, samples | sizes, st.floats(0.5, 0.9999))
@example([1e-100, 1e100], [1e100, 1e-100], 0.95)
@example([5e-324], [1e308], 0.95)
def test_an_interval_holds_its_value(a: list[float], b: list[float], confidence: float) -> None:
    for interval in (ratio_interval, fieller_interval, bootstrap_interval):
        try:
            found = interval(a, b, confidence=confidence)
        except ReportError:
            continue
        in_order(found.value, found.low, found.high)
    try:
        in_order(*harmonic_interval(a, confidence))
    except ReportError:
        assert not all(LEAST <= value <= MOST for value in a)


@settings(deadline=None)
@given(sizes, sizes, st.floats(0.5, 0.9999), st.floats(1e-9, 1e9))
def test_the_limits_of_many_points_hold_their_values(
    a: list[float], b: list[float], confidence: float, q: float
) -> None:
    every = [np.zeros(len(values), dtype=np.int64) for values in (a, b)]
    plain = [moments(np.array(x), at, 1) for x, at in zip((a, b), every, strict=True)]
    logs = [moments(np.log(x), at, 1) for x, at in zip((a, b), every, strict=True)]
    found = [
        ratios(logs[0], logs[1], confidence),
        fiellers(plain[0], plain[1], confidence),
        means(plain[0], confidence),
        harmonic_means(plain[0], confidence),
    ]
    for limits in (*found, *(shared(one, np.array([q])) for one in found)):
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


@given(anything, anything, anything, anything)
def test_time_to_a_quality(samples: float, rate: float, evaluation: float, start: float) -> None:
    try:
        found = time_to_accuracy(samples, rate, evaluation, start)
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
    found = shared(Limits(*(np.array([x]) for x in (2.0, 1e-250, 1e300))), np.array([1e-9]))
    assert [float(one[0]) for one in found[:2]] == [pytest.approx(2e9), 0.0]
    assert isnan(float(found.high[0]))
