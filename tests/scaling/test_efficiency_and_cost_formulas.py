from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hpc_train.base.errors import ReportError
from hpc_train.scaling.confidence_intervals import ratio_interval
from hpc_train.scaling.efficiency_and_cost_formulas import (
    doubling_efficiency,
    hours,
    hours_per_million,
    karp_flatt,
)
from hpc_train.scaling.time_to_accuracy_by_point import (
    samples_to_target,
    statistical_efficiency,
    time_to_accuracy,
)
from tests.scaling.true_laws import amdahl

sizes = st.floats(1.5, 1e4)
shares = st.floats(0, 1)


def test_arrays_go_through_as_they_are() -> None:
    q = np.array([2.0, 4.0, 8.0])
    assert doubling_efficiency(q, 2 * q).tolist() == [1.0, 1.0, 1.0]
    assert karp_flatt(amdahl(q, 0.1), q) == pytest.approx([0.1] * 3)
    assert np.isnan(doubling_efficiency(np.array([np.nan]), np.array([1.0]))).all()


@given(sizes, shares)
def test_karp_and_flatt_find_amdahls_share(q: float, f: float) -> None:
    assert karp_flatt(amdahl(q, f), q) == pytest.approx(f, abs=1e-9)


def test_at_two_nodes_the_serial_share_drowns_in_noise() -> None:
    # 5 jobs, 2 % noise, true e = 0.002: about +-0.03 around it at q = 2, 60 times less at q = 64.
    random = np.random.default_rng(3)
    base = 1 + 0.02 * random.standard_normal(5)
    widths = {}
    for q in (2.0, 64.0):
        rates = amdahl(q, 0.002) * (1 + 0.02 * random.standard_normal(5))
        speedup = ratio_interval(rates.tolist(), base.tolist())
        low, high = (karp_flatt(limit or 0.0, q) for limit in (speedup.high, speedup.low))
        assert low < 0.002 < high
        widths[q] = high - low
    assert widths[2.0] > 0.03
    assert widths[64.0] < 0.0015


def test_speedups_of_a_thousand_million_tokens_per_second() -> None:
    random = np.random.default_rng(4)
    noise = random.standard_normal(5)
    small = ratio_interval((2 + 1e-9 * noise).tolist(), [1.0] * 5)
    large = ratio_interval((2e9 + noise).tolist(), [1e9] * 5)
    assert large == pytest.approx(small, rel=1e-14)
    assert large.high is not None
    assert large.low is not None
    # A variance from sums of squares has no digit left here.
    assert large.high - large.low == pytest.approx(
        2 * 2.776 * 1e-9 * noise.std(ddof=1) / 5**0.5, 1e-3
    )


def test_costs() -> None:
    assert hours(8.0, 1800.0) == 4.0
    assert hours_per_million(8.0, 1000.0) == pytest.approx(8 * 1000 / 3600)


def test_speed_beside_quality() -> None:
    seen, quality = [100.0, 200.0, 300.0], [0.5, 0.75, 0.8]
    assert samples_to_target(seen, quality, 0.75) == 200
    assert samples_to_target(seen, [3.0, 2.0, 1.0], 2.5, higher=False) == 200
    assert samples_to_target(seen, quality, 0.9) is None
    assert statistical_efficiency(200.0, 250.0) == 0.8
    assert statistical_efficiency(200.0, None) is None
    assert time_to_accuracy(200.0, 50.0, 5.0) == 9.0
    assert time_to_accuracy(None, 50.0) is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: doubling_efficiency(0.0, 1.0), "a speedup must be a finite number above 0, not 0"),
        (lambda: doubling_efficiency(np.array([1.0, np.inf]), np.array([1.0, 2.0])), "not inf"),
        (lambda: karp_flatt(1.0, 1.0), "q of Karp and Flatt must be a finite number above 1"),
        (lambda: hours_per_million(8.0, 0.0), "a rate must be"),
        (lambda: samples_to_target([1.0], [], 1.0), "0 evaluations at 1 numbers"),
        (lambda: time_to_accuracy(1.0, 1.0, -1.0), "the time of start-up must be 0 or more"),
    ],
)
def test_what_is_not_defined_is_refused(wrong: Callable[[], object], said: str) -> None:
    with pytest.raises(ReportError, match=said):
        wrong()
