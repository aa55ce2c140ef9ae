"""Scores of MLPerf results: what is dropped, what a failed run costs, what is no result."""

from __future__ import annotations

import math

import pytest

from hpc_train.base.errors import ReportError
from hpc_train.scaling.confidence_intervals import ratio_interval
from hpc_train.scaling.time_to_accuracy_by_point import score


def test_best_and_worst_are_dropped() -> None:
    assert score([3.0, 100.0, 1.0, 4.0, 5.0]) == 4.0
    assert score([1.0, *[2.0] * 4, *[4.0] * 4, 90.0]) == 3.0


def test_of_forty_runs_four_are_dropped_at_each_end() -> None:
    assert score([1.0] * 4 + [2.0] * 32 + [100.0] * 4) == 2.0
    assert score([1.0] * 3 + [2.0] * 33 + [100.0] * 4) == 2.0
    assert score([1.0] * 4 + [2.0] * 31 + [100.0] * 5) > 2.0


def test_three_runs_are_averaged() -> None:
    assert score([1.0, 2.0, 6.0]) == 3.0


def test_one_failed_run_is_the_worst_and_two_are_too_many() -> None:
    assert score([1.0, 2.0, 3.0, 4.0, None]) == 3.0
    assert score([1.0, 2.0, 3.0, None, None]) == math.inf
    assert score([1.0, 2.0, None]) == math.inf


def test_the_factor_of_the_folder_multiplies() -> None:
    assert score([1.0, 2.0, 6.0], 1.5) == 4.5


@pytest.mark.parametrize("times", [[], [1.0, 2.0], [1.0, math.nan, 2.0], [1.0, 2.0, -3.0]])
def test_what_makes_no_score(times: list[float]) -> None:
    with pytest.raises(ReportError):
        score(times)


# training_results_v4.0, NVIDIA, Llama 2 70B LoRA: run_stop - run_start of ten logs each, minutes.
LORA = {
    8: (27.151, 27.387, 30.824, 27.115, 27.077, 27.166, 27.141, 30.745, 23.541, 30.765),
    64: (5.722, 5.053, 4.430, 5.115, 5.731, 5.710, 5.719, 4.401, 5.055, 5.073),
}


def test_olympic_means_of_ten_runs() -> None:
    # Without 23.541 and 30.824; without 4.401 and 5.731.
    assert score(LORA[8]) == pytest.approx(224.547 / 8)
    assert score(LORA[64]) == pytest.approx(41.877 / 8)
    # Plain means differ by less than a run does, but not by nothing.
    assert score(LORA[8]) != pytest.approx(sum(LORA[8]) / 10, rel=1e-3)


def test_time_to_train_has_an_interval_too() -> None:
    value, low, high = ratio_interval(LORA[8], LORA[64])
    assert value == pytest.approx(5.36, abs=0.02)
    assert low is not None
    assert high is not None
    assert 4.8 < low < value < high < 5.9
