"""Nodes, sessions and slow runs: what is found, and how often it is found by chance."""

from collections.abc import Sequence

import msgspec
import numpy as np
import pandas as pd
import pytest

from hpc_train.logs.record import Record
from hpc_train.runs.expected_runs import ExpectedRun
from hpc_train.scaling.caveats import apart_points, one_session, slow_runs
from hpc_train.scaling.measurements import FlagCode
from hpc_train.scaling.points import grouped
from hpc_train.scaling.record_arrays import Floats, Ints
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from tests.bench import bench_coverage
from tests.scaling.studies import expected, rate, study

HOUR = 3600.0
NOISE = np.array([0.01, -0.02, 0.03, -0.01, 0.02, -0.03, 0.015, -0.01, 0.005])
SPREAD = np.array([-0.02, -0.012, -0.004, 0.004, 0.012, 0.02] * 2)


def on_nodes(nodes: Sequence[str], series: Sequence[str] = ()) -> list[tuple[int, int]]:
    """Return the compared points without a common node, of runs of equal rates on these nodes."""
    runs, records = [], list[Record]()
    for place, text in enumerate(nodes):
        count = len(text.split(","))
        axes = {"nodes": count} | ({"launcher": series[place]} if series else {})
        runs.append(expected(f"r{place}", nodes=count, axes=axes))
        records += rate(runs[-1].run_id, 100.0 * count)
    table = run_frame(study(runs), records).assign(node_list=list(nodes))
    found = apart_points(table, speedup_frame(table, study([])))
    return [(one.point, one.other) for one in found]


def test_a_point_on_other_nodes_than_its_baseline_is_named() -> None:
    assert on_nodes(["a"] * 4 + ["b,c"] * 4) == [(1, 0)]


def test_series_on_other_nodes_are_named_at_each_size() -> None:
    nodes = ["a"] * 4 + ["a,b"] * 4 + ["c"] * 4 + ["c,d"] * 4
    assert on_nodes(nodes, ["srun"] * 8 + ["torchrun"] * 8) == [(2, 0), (3, 1)]


@pytest.mark.parametrize(
    "nodes",
    [
        # A common node, other nodes for each repetition, and too few runs to exclude chance.
        ["a"] * 4 + ["a,b"] * 4,
        ["a", "b", "c", "d", "e,f", "g,h", "e,h", "f,g"],
        ["a"] * 2 + ["b,c"] * 2,
        ["a", "b,c"],
        ["a", "a", "a", ""] + ["b,c"] * 4,
        [""] * 8,
    ],
    ids=["common", "several", "two runs", "one run", "one unknown", "unknown"],
)
def test_other_points_are_not_named(nodes: list[str]) -> None:
    assert on_nodes(nodes) == []


def at_random(chance: np.random.Generator, pool: int, points: int, repetitions: int) -> list[str]:
    """Return the nodes of runs on 1, 2, 4 ... nodes, each on nodes drawn from a pool."""
    return [
        ",".join(f"n{node:02}" for node in sorted(chance.choice(pool, 2**point, replace=False)))
        for point in range(points)
        for _ in range(repetitions)
    ]


def test_nodes_at_random_are_named_in_at_most_one_study_of_twenty() -> None:
    chance = np.random.default_rng(17)
    sizes = ((4, 2, 3), (4, 3, 2), (8, 3, 5)) * 16
    found = [bool(on_nodes(at_random(chance, *size))) for size in sizes]
    assert sum(found) / len(found) <= 0.05


def in_order(points: Ints, logs: Floats, wall: float = 60.0) -> pd.DataFrame:
    """Return runs of these points, one an hour, whose rates have these deviations."""
    asked: list[ExpectedRun] = []
    records: list[Record] = []
    for place, (point, log) in enumerate(zip(points.tolist(), logs.tolist(), strict=True)):
        one = expected(f"r{place}", gpus=2**point)
        asked.append(msgspec.structs.replace(one, started=place * HOUR, wall_s=wall))
        records += rate(one.run_id, 100.0 * 2**point * float(np.exp(log)))
    return run_frame(study(asked), records)


def sessions(table: pd.DataFrame) -> tuple[str, ...]:
    return one_session(table, grouped(table))


THREE = np.repeat(np.arange(3), 3)


def test_one_session_for_each_size_is_named_and_has_no_interval() -> None:
    table = in_order(THREE, NOISE)
    assert sessions(table) == tuple(table["series"].unique())
    points = speedup_frame(table, study([]))
    assert points["speedup"].notna().all()
    assert points[["speedup_low", "efficiency_high", "doubling_low"]].isna().all().all()
    codes = [{flag.code for flag in flags} for flags in points["flags"]]
    assert [FlagCode.ONE_SESSION in own for own in codes] == [False, True, True]


def test_sizes_in_turns_or_at_the_same_time_are_no_sessions() -> None:
    assert not sessions(in_order(np.tile(np.arange(3), 3), NOISE))
    # A session may begin at the moment at which the one before ends.
    assert sessions(in_order(THREE, NOISE, HOUR))
    assert not sessions(in_order(THREE, NOISE, HOUR + 1))
    assert not sessions(in_order(np.arange(3), NOISE[:3]))


def of_sizes(*logs: Floats) -> pd.DataFrame:
    """Return the runs of sizes whose rates have these deviations."""
    points = np.repeat(np.arange(len(logs)), [len(own) for own in logs])
    return in_order(points, np.concatenate(logs))


def with_slow(*places: int) -> Floats:
    found: Floats = SPREAD.copy()
    found[list(places)] -= 0.2
    return found


def test_slow_runs_are_named_with_their_size_and_how_long_they_took() -> None:
    found = slow_runs(of_sizes(SPREAD, with_slow(3), with_slow(0, 5)))
    assert [(one.run_id, one.point, one.runs) for one in found] == [
        ("r24", 2, 12), ("r15", 1, 12), ("r29", 2, 12)
    ]  # fmt: skip
    assert [one.times for one in found] == pytest.approx([1.25, 1.22, 1.2], abs=0.02)


def test_fast_runs_small_differences_and_pairs_are_not_slow() -> None:
    assert not slow_runs(of_sizes(SPREAD, -with_slow(3)))
    quiet = SPREAD / 1000
    quiet[3] -= 0.09
    assert not slow_runs(of_sizes(quiet, quiet))
    assert not slow_runs(of_sizes(np.array([0.0, -0.5]), np.array([0.0])))


@pytest.mark.parametrize("n", [3, 5, 20])
@pytest.mark.parametrize("kind", ["normal", "lognormal 20 %", "unequal spread"])
def test_noise_has_no_slow_run_in_95_percent_of_the_studies(kind: str, n: int) -> None:
    logs = bench_coverage.logs(kind, n, np.random.default_rng(1))[:200]
    table, found = of_sizes(*logs[0]), 0
    for each in logs:
        table["samples_per_second"] = 100 * np.exp(each.ravel())
        found += bool(slow_runs(table))
    assert found / len(logs) < 0.05 + 2.5 * 0.0154


def test_beside_a_series_in_turns_a_session_is_chance() -> None:
    table = in_order(np.array([0, 0, 1, 1, 0, 1, 0, 1]), NOISE[:8])
    table["series"] = ["srun"] * 4 + ["torchrun"] * 4
    assert not sessions(table)
    assert sessions(table[:4].reset_index(drop=True)) == ("srun",)
