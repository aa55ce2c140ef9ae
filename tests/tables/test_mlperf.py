"""Scores of MLPerf results: what is dropped, what a failed run costs, what is no result."""

from __future__ import annotations

import math

import pytest

from hpc_train.errors import ReportError
from hpc_train.tables.mlperf import score


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
