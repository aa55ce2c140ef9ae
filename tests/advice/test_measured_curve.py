"""Curves with a known law, and curves that give no forecast."""

import pytest
from hypothesis import given, strategies as st

from hpc_train.advice.step_time import SizeRate, forecast_rate, refusal
from hpc_train.advice.verdicts import advise
from tests.advice.questions import A100, ask, gpt, row_of, step

SIZES = (4, 8, 16, 32)


def curve(*rates: float, first: int = 4) -> list[SizeRate]:
    sizes = [first * 2**n for n in range(len(rates))]
    return [
        SizeRate(size, max(size // 4, 1), rate) for size, rate in zip(sizes, rates, strict=True)
    ]


def test_the_forecast_continues_a_power_law() -> None:
    power = [100 * n**0.9 for n in SIZES]
    assert forecast_rate(curve(*power), 64)[0] == pytest.approx(100 * 64**0.9)


def test_a_perfect_curve_has_the_margin_only() -> None:
    assert forecast_rate(curve(4, 8, 16), 64) == pytest.approx((64, 64 * 0.84, 64 * 1.16))


def test_a_rate_above_the_ideal_is_not_continued() -> None:
    assert forecast_rate(curve(4, 9, 22), 32)[0] == pytest.approx(44)


@given(st.lists(st.floats(0.01, 1e6), min_size=2, max_size=8), st.floats(1.01, 4))
def test_the_band_contains_the_forecast(rates: list[float], times: float) -> None:
    known = curve(*rates)
    ranks = max(int(known[-1].ranks * times), known[-1].ranks + 1)
    rate, low, high = forecast_rate(known, ranks)
    assert 0 < low < rate < high


@pytest.mark.parametrize(
    ("known", "ranks", "reason"),
    [
        (curve(1, 2), 16, "there are 2 and 1"),
        (curve(1, 2, 4, first=1), 8, "there are 3 and 0"),
        (
            curve(1, 2, 4),
            65,
            "no forecast beyond 64, 4 times the largest measured size: measure 32",
        ),
        (curve(1, 2, 4), 64, None),
    ],
)
def test_what_gives_no_forecast(known: list[SizeRate], ranks: int, reason: str | None) -> None:
    found = refusal(known, ranks)
    assert found is reason or (reason is not None and found is not None and reason in found)


MEASURED = tuple(step(8 / ranks, ranks) for ranks in (1, 4, 8, 16))


def test_rows_beyond_the_measured_sizes_have_a_forecast() -> None:
    found = advise(ask(gpt(), A100, 1, 4, 8, 16, 32, measured=MEASURED))
    row = row_of(found, "ddp", 32)
    assert row.forecast == pytest.approx(0.25)
    assert row.forecast is not None
    assert row.step.low < row.forecast < (row.step.high or 0)
    assert row_of(found, "ddp", 16).measured
    assert row_of(found, "fsdp", 32).forecast is None
    assert not found.not_forecast


def test_another_batch_is_another_curve() -> None:
    mixed = (*MEASURED[:3], step(0.5, 16, 128))
    found = advise(ask(gpt(), A100, 32, measured=mixed))
    assert row_of(found, "ddp", 32).forecast is None
    weak = tuple(step(1.0, ranks, 16.0 * ranks) for ranks in (4, 8, 16))
    row = row_of(advise(ask(gpt(global_batch=512), A100, 32, measured=weak)), "ddp", 32)
    assert row.forecast == pytest.approx(1.0)
