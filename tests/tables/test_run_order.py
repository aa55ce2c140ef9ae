"""Starts of the runs: sessions, drift and autocorrelation, and how often they are found wrongly."""

from __future__ import annotations

import msgspec
import numpy as np
import pandas as pd
import pytest

from hpc_train.model.expected_study import ExpectedRun
from hpc_train.model.quality_flag import FlagCode
from hpc_train.model.record import Record
from hpc_train.tables.group_reductions import Floats
from hpc_train.tables.record_arrays import Ints
from hpc_train.tables.run_order import LEVEL, RunOrder, run_order
from hpc_train.tables.runs import run_frame
from hpc_train.tables.speedup import speedup_frame
from tests.tables.studies import expected, rate, study

HOUR = 3600.0


def runs(points: Ints, logs: Floats, wall: float = 60.0) -> pd.DataFrame:
    """Return runs of these points, one an hour, whose rates have these deviations."""
    asked: list[ExpectedRun] = []
    records: list[Record] = []
    for place, (point, log) in enumerate(zip(points.tolist(), logs.tolist(), strict=True)):
        one = expected(f"r{place}", gpus=2**point)
        asked.append(msgspec.structs.replace(one, started=place * HOUR, wall_s=wall))
        records += rate(one.run_id, 100.0 * 2**point * float(np.exp(log)))
    return run_frame(study(asked), records)


def in_turns(chance: np.random.Generator, points: int, repetitions: int) -> Ints:
    return np.concatenate([chance.permutation(points) for _ in range(repetitions)])


def one_after_the_other(points: int, repetitions: int) -> Ints:
    return np.repeat(np.arange(points), repetitions)


NOISE = np.array([0.01, -0.02, 0.03, -0.01, 0.02, -0.03, 0.015, -0.01, 0.005])


def test_sizes_in_turns_have_no_finding() -> None:
    assert run_order(runs(np.tile(np.arange(3), 3), NOISE)) == RunOrder()


def test_one_session_for_each_size_is_named_and_has_no_interval() -> None:
    table = runs(one_after_the_other(3, 3), NOISE)
    assert run_order(table).one_session == tuple(table["series"].unique())
    points = speedup_frame(table, study([]))
    assert points["speedup"].notna().all()
    assert points[["speedup_low", "efficiency_high", "doubling_low"]].isna().all().all()
    codes = [{flag.code for flag in flags} for flags in points["flags"]]
    assert [FlagCode.ONE_SESSION in own for own in codes] == [False, True, True]


@pytest.mark.parametrize("wall", [3 * HOUR + 1, 9 * HOUR])
def test_runs_at_the_same_time_are_no_sessions(wall: float) -> None:
    assert not run_order(runs(one_after_the_other(3, 3), NOISE, wall)).one_session


def test_a_session_may_begin_at_the_moment_at_which_the_one_before_ends() -> None:
    assert run_order(runs(one_after_the_other(3, 3), NOISE, HOUR)).one_session
    assert not run_order(runs(one_after_the_other(3, 3), NOISE, HOUR + 1)).one_session


def test_beside_a_series_in_turns_a_session_is_chance() -> None:
    table = runs(np.array([0, 0, 1, 1, 0, 1, 0, 1]), NOISE[:8])
    table["series"] = ["srun"] * 4 + ["torchrun"] * 4
    assert not run_order(table).one_session
    assert run_order(table[:4].reset_index(drop=True)).one_session == ("srun",)


def test_a_single_run_of_a_size_is_no_session() -> None:
    assert not run_order(runs(np.array([0, 1, 2]), NOISE[:3])).one_session


def test_an_unknown_start_leaves_nothing_to_say() -> None:
    table = runs(one_after_the_other(3, 3), NOISE)
    table.loc[4, "started"] = np.nan
    assert run_order(table) == RunOrder()
    table["state"] = table["state"].astype(str).mask(table.index == 4, "FAILED")
    assert run_order(table).one_session, "a failed run has no rate, and its start is not needed"


def test_a_drift_is_found_with_its_size() -> None:
    trend = np.linspace(0, -0.3, 9)
    found = run_order(runs(np.tile(np.arange(3), 3), trend + NOISE / 10))
    assert found.drift == pytest.approx(np.exp(-0.3), rel=0.02)
    assert found.autocorrelation is None


def test_noise_that_neighbours_share_is_found() -> None:
    slow = np.repeat([0.1, -0.1, 0.1, -0.1, 0.1, -0.1], 6)
    found = run_order(runs(np.tile(np.arange(3), 12), slow))
    assert found.autocorrelation == pytest.approx(0.7, abs=0.2)


def test_one_run_each_or_equal_rates_have_no_finding() -> None:
    assert run_order(runs(np.arange(5), NOISE[:5])) == RunOrder()
    assert run_order(runs(np.tile(np.arange(2), 4), np.zeros(8))) == RunOrder()


@pytest.mark.parametrize("spread", ["equal", "unequal", "outliers"])
@pytest.mark.parametrize("size", [(2, 3), (4, 5)])
def test_at_most_one_study_in_twenty_has_a_false_finding(
    size: tuple[int, int], spread: str
) -> None:
    chance = np.random.default_rng(11)
    studies, false = 150, 0
    for _ in range(studies):
        points = in_turns(chance, *size)
        noise = 0.02 * chance.standard_normal(len(points))
        noise *= np.where(points % 2, 3, 1) if spread == "unequal" else 1
        noise += 0.2 * (chance.random(len(points)) < 0.1) if spread == "outliers" else 0
        found = run_order(runs(points, noise))
        false += found.drift is not None or found.autocorrelation is not None
    # Three standard errors of 150 studies above the level.
    assert false / studies <= LEVEL + 3 * (LEVEL * (1 - LEVEL) / studies) ** 0.5


def test_simultaneous_intervals_are_wider_by_bonferroni() -> None:
    table = runs(np.tile(np.arange(3), 3), NOISE)
    both = msgspec.structs.replace(study([]), bands="simultaneous")
    one, all_of_them = (speedup_frame(table, each) for each in (study([]), both))
    at_975 = speedup_frame(table, study([]), confidence=0.975)
    for name in ("speedup_low", "speedup_high", "efficiency_low", "doubling_high"):
        np.testing.assert_allclose(all_of_them[name], at_975[name])
    assert (all_of_them["speedup_low"][1:] < one["speedup_low"][1:]).all()
    assert all_of_them["confidence"].eq(0.95).all()
