"""Slow runs: found where some runs are slow, and how often where none is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from hpc_train.reports.scaling_report import scaling_report
from hpc_train.reports.slow_run_caveats import with_slow_runs
from hpc_train.tables.group_reductions import Floats
from hpc_train.tables.slow_runs import slow_runs
from hpc_train.tables.speedup import speedup_frame
from tests.bench import bench_coverage
from tests.tables.studies import study
from tests.tables.test_run_order import runs

STUDIES = 400
NOISE = np.array([-0.02, -0.012, -0.004, 0.004, 0.012, 0.02] * 2)


def table(*logs: Floats) -> pd.DataFrame:
    """Return the runs of sizes whose rates have these deviations."""
    points = np.repeat(np.arange(len(logs)), [len(own) for own in logs])
    return runs(points, np.concatenate(logs))


def with_slow(*places: int) -> Floats:
    found: Floats = NOISE.copy()
    found[list(places)] -= 0.2
    return found


def test_slow_runs_are_named_with_their_size() -> None:
    (first, second) = slow_runs(table(NOISE, with_slow(3), with_slow(0, 5)))
    assert (first.point, first.names, first.runs) == (1, ("r15",), 12)
    assert (second.point, second.names, second.runs) == (2, ("r24", "r29"), 12)
    assert second.times == pytest.approx(np.exp(0.2), rel=0.03)


def test_the_first_line_of_a_report_says_so() -> None:
    frame = table(NOISE, with_slow(0, 5))
    asked = study([])
    points = speedup_frame(frame, asked)
    report = with_slow_runs(scaling_report(asked, frame, points), slow_runs(frame), points)
    assert report.summary[0].startswith(
        "Caveats: 2 slow runs, more than noise explains (skewness, p < 0.025): 2 GPUs: 2 of 12 "
        "runs took 1.22 times as long (r12, r17)."
    )
    assert not any("slow run" in line for line in scaling_report(asked, frame, points).summary)


@pytest.mark.parametrize(("share", "said"), [(0.019, ""), (0.03, "took 3 % longer (r15)")])
def test_a_slow_run_took_at_least_two_percent_longer(share: float, said: str) -> None:
    # A quiet machine: 4 standard deviations are less than 0.01 %.
    quiet = NOISE / 1000
    quiet_but_one = quiet.copy()
    quiet_but_one[3] -= np.log1p(share)
    frame = table(quiet, quiet_but_one)
    asked = study([])
    points = speedup_frame(frame, asked)
    report = with_slow_runs(scaling_report(asked, frame, points), slow_runs(frame), points)
    assert ("slow run" in report.summary[0]) == bool(said)
    assert said in report.summary[0]


def test_fast_runs_and_equal_runs_are_not_slow() -> None:
    assert not slow_runs(table(NOISE, -with_slow(3)))
    assert not slow_runs(table(np.zeros(5), np.zeros(5)))
    assert not slow_runs(table(NOISE[:2], NOISE[:1]))


def found_in(kind: str, n: int) -> float:
    """Return the share of simulated studies with a slow run."""
    logs = bench_coverage.logs(kind, n, np.random.default_rng(1))[:STUDIES]
    one = table(*logs[0])
    found = 0
    for each in logs:
        one["samples_per_second"] = 100 * np.exp(each.ravel())
        found += bool(slow_runs(one))
    return found / STUDIES


@pytest.mark.parametrize("n", [3, 5, 20])
@pytest.mark.parametrize("kind", ["normal", "lognormal 20 %", "unequal spread"])
def test_symmetric_noise_has_none_in_95_percent_of_the_studies(kind: str, n: int) -> None:
    # 400 studies: the standard error of 5 % is 1.1 %.
    assert found_in(kind, n) < 0.05 + 2.5 * 0.011


@pytest.mark.parametrize(("n", "least"), [(5, 0.15), (10, 0.6), (20, 0.9)])
def test_growing_outliers_are_found(n: int, least: float) -> None:
    assert found_in("growing outliers", n) > least
