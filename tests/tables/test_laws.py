from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_train.errors import ReportError
from hpc_train.tables import laws
from hpc_train.tables.accuracy import samples_to_target, statistical_efficiency, time_to_accuracy
from hpc_train.tables.cost import hours, hours_per_million, kwh_per_million, price_per_million
from hpc_train.tables.intervals import Interval, ratio_interval

sizes = st.floats(1.5, 1e4)
shares = st.floats(0, 1)


def test_by_rate_and_by_time_are_one_speedup() -> None:
    assert laws.speedup(800.0, 100.0) == laws.speedup_of_times(1.0, 8.0) == 8.0
    assert laws.efficiency(6.5, 8.0) == 0.8125
    assert laws.weak_efficiency(1.25, 1.0) == 0.8
    assert laws.scaled_speedup(laws.weak_efficiency(1.25, 1.0), 8.0) == 6.4
    assert laws.doubling_efficiency(4.0, 6.0) == 0.75
    assert laws.load_balance(0.8, 1.0) == 0.8


def test_arrays_go_through_as_they_are() -> None:
    q = np.array([2.0, 4.0, 8.0])
    assert laws.efficiency(0.5 * q, q).tolist() == [0.5, 0.5, 0.5]
    assert laws.karp_flatt(laws.amdahl(q, 0.1), q) == pytest.approx([0.1] * 3)
    assert np.isnan(laws.speedup(np.array([np.nan]), np.array([1.0]))).all()


@given(sizes, shares)
def test_karp_and_flatt_find_amdahls_share(q: float, f: float) -> None:
    assert laws.karp_flatt(laws.amdahl(q, f), q) == pytest.approx(f, abs=1e-9)


@given(sizes, shares)
def test_the_laws_lie_between_one_and_the_ideal(q: float, f: float) -> None:
    for found in (laws.amdahl(q, f), laws.gustafson(q, f), laws.usl(q, f, 0.0)):
        assert 1 - 1e-9 <= found <= q * (1 + 1e-9)
    assert laws.usl(q, f, 0.0) == pytest.approx(laws.amdahl(q, f))
    assert laws.gustafson(q, f) >= laws.amdahl(q, f) * (1 - 1e-9)


def test_gunthers_peak_is_where_his_law_is_highest() -> None:
    peak = laws.usl_peak(0.02, 1e-4)
    assert peak is not None
    assert peak == pytest.approx(98.99, abs=0.01)
    around = laws.usl(np.array([0.99, 1.0, 1.01]) * peak, 0.02, 1e-4, 3.0)
    assert around.argmax() == 1
    assert around[1] == pytest.approx(3 * laws.usl(peak, 0.02, 1e-4))
    assert laws.usl_peak(0.02, 0.0) is None
    assert laws.usl_peak(1.0, 0.1) is None


def test_karp_and_flatt_change_the_sides_of_an_interval() -> None:
    value, low, high = laws.karp_flatt_interval(Interval(3.2, 3.0, 3.4), 4.0)
    assert (value, low, high) == pytest.approx((1 / 12, 1 / 17.0, 1 / 9.0))
    assert laws.karp_flatt_interval(Interval(3.2, None, None), 4.0)[1:] == (None, None)
    assert laws.karp_flatt_interval(Interval(3.2, 1.0, None), 4.0)[1:] == pytest.approx((-1 / 3, 1))


def test_at_two_nodes_the_serial_share_drowns_in_noise() -> None:
    # 5 jobs, 2 % noise, true e = 0.002: about +-0.03 around it at q = 2, 60 times less at q = 64.
    random = np.random.default_rng(3)
    base = 1 + 0.02 * random.standard_normal(5)
    widths = {}
    for q in (2.0, 64.0):
        rates = laws.amdahl(q, 0.002) * (1 + 0.02 * random.standard_normal(5))
        _, low, high = laws.karp_flatt_interval(ratio_interval(rates.tolist(), base.tolist()), q)
        assert low is not None
        assert high is not None
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


def test_mfu_of_mpt_7b() -> None:
    flops = laws.flops_per_token(6_658_859_008, 32, 4096, 2048)
    assert 10475 * flops == pytest.approx(452.3e12, abs=0.05e12)
    assert laws.mfu(1_340_830.0, flops, 128.0, 989.5e12) == pytest.approx(0.4571, abs=6e-5)


def test_costs() -> None:
    assert hours(8.0, 1800.0) == 4.0
    assert hours_per_million(8.0, 1000.0) == pytest.approx(8 * 1000 / 3600)
    assert price_per_million(4.0, 2.5) == 10.0
    assert np.isnan(price_per_million(4.0, None))
    assert kwh_per_million(7.2e6, 2e5) == 10.0


def test_speed_beside_quality() -> None:
    seen, quality = [100.0, 200.0, 300.0], [0.5, 0.75, 0.8]
    assert samples_to_target(seen, quality, 0.75) == 200
    assert samples_to_target(seen, [3.0, 2.0, 1.0], 2.5, higher=False) == 200
    assert samples_to_target(seen, quality, 0.9) is None
    assert statistical_efficiency(200.0, 250.0) == 0.8
    assert statistical_efficiency(200.0, None) is None
    assert time_to_accuracy(200.0, 50.0, 3.0, 2.0) == 9.0
    assert time_to_accuracy(None, 50.0) is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: laws.speedup(0.0, 1.0), "a rate must be a finite number above 0, not 0"),
        (lambda: laws.speedup(1.0, -2.0), "the baseline's rate must be"),
        (lambda: laws.efficiency(np.array([1.0, np.inf]), np.array([1.0, 2.0])), "not inf"),
        (lambda: laws.karp_flatt(1.0, 1.0), "q of Karp and Flatt must be a finite number above 1"),
        (lambda: laws.amdahl(2.0, 1.5), "Amdahl's f is a share, from 0 to 1, not 1.5"),
        (lambda: laws.gustafson(2.0, -0.1), "Gustafson's f' is a share"),
        (lambda: laws.usl(2.0, -0.1, 0.0), "USL's a must be 0 or more"),
        (lambda: laws.mfu(1.0, 1.0, 0.0, 1.0), "GPUs must be"),
        (lambda: hours_per_million(8.0, 0.0), "a rate must be"),
        (lambda: samples_to_target([1.0], [], 1.0), "0 evaluations at 1 numbers"),
        (lambda: time_to_accuracy(1.0, 1.0, -1.0), "the time of evaluation must be 0 or more"),
    ],
)
def test_what_is_not_defined_is_refused(wrong: Callable[[], object], said: str) -> None:
    with pytest.raises(ReportError, match=said):
        wrong()
