from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest

from hpc_train.model.expected_study import IntervalKind
from hpc_train.model.quality_flag import FlagCode
from hpc_train.tables.confidence_intervals import bootstrap
from hpc_train.tables.efficiency_and_cost_formulas import karp_flatt
from hpc_train.tables.group_reductions import Floats
from hpc_train.tables.runs import run_frame
from hpc_train.tables.speedup import speedup_frame
from tests.tables.arrays import fieller, welch
from tests.tables.studies import expected, rate, record, study

Rates = dict[int, list[float]]
FEW: Rates = {1: [100.0, 103.0, 99.0], 2: [190.0, 180.0, 201.0, 188.0], 4: [330.0, 345.0]}


def many(n: int) -> Rates:
    random = np.random.default_rng(1)
    return {
        nodes: (random.normal(95 * nodes, 3, n + nodes)).tolist() for nodes in (1, 2, 4)
    }  # fmt: skip


def points(rates: Rates, interval: IntervalKind, *, train: bool = False) -> pd.DataFrame:
    runs, records = [], []
    for nodes, values in rates.items():
        for number, value in enumerate(values):
            name = f"n{nodes}-{number}"
            runs.append(expected(name, nodes=nodes))
            records += rate(name, value, 64)
            records += [record(name, "time_to_train", 1e4 / value)] if train else []
    asked = msgspec.structs.replace(study(runs), interval=interval)
    return speedup_frame(run_frame(asked, records), asked)


def limits(row: pd.Series[float], name: str) -> list[float]:
    return [float(row[f"{name}{end}"]) for end in ("", "_low", "_high")]


def _single(interval: IntervalKind, a: list[float], b: list[float]) -> list[float]:
    methods: dict[str, Callable[[Floats, Floats, float], tuple[Any, Any, Any]]] = {
        "welch": welch, "fieller": fieller, "bootstrap": bootstrap,
    }  # fmt: skip
    return [float(limit) for limit in methods[interval](np.array(a), np.array(b), 0.95)]


def times(rates: list[float]) -> list[float]:
    return [1 / rate for rate in rates]


@pytest.mark.parametrize("interval", ["welch", "fieller", "bootstrap"])
def test_every_ratio_has_the_interval_that_was_asked_for(interval: IntervalKind) -> None:
    rates = many(20) if interval == "bootstrap" else FEW
    base, two, four = (times(rates[nodes]) for nodes in (1, 2, 4))
    speedup, doubled = (_single(interval, first, four) for first in (base, two))
    row = points(rates, interval, train=True).iloc[2]
    value, low, high = speedup
    rising = [karp_flatt(limit, 4) for limit in (value, high, low)]
    assert limits(row, "speedup") == pytest.approx(speedup)
    assert limits(row, "efficiency") == pytest.approx([limit / 4 for limit in speedup])
    assert limits(row, "doubling") == pytest.approx([limit / 2 for limit in doubled])
    assert limits(row, "karp_flatt") == pytest.approx(rising)
    assert limits(row, "time_to_train_speedup") == pytest.approx(speedup)
    assert not any(flag.code == FlagCode.BOOTSTRAP for flag in row["flags"])


def test_a_bootstrap_of_few_runs_is_a_flag_and_no_interval() -> None:
    rates = {**many(20), 2: [190.0, 180.0, 201.0]}
    base, two, four = points(rates, "bootstrap").to_dict("records")
    flag = "bootstrap: needs 20 runs, there are 3"
    assert flag in map(str, two["flags"])
    assert pd.isna(two["speedup_low"])
    assert two["speedup"] == pytest.approx(np.mean(times(rates[1])) / np.mean(times(rates[2])))
    # Its own interval stands, that of its half does not.
    assert flag in map(str, four["flags"])
    assert pd.isna(four["doubling_low"])
    assert four["speedup_low"] > 3
    assert base["flags"] == ()


def test_fieller_has_no_limits_for_one_run_nor_where_zero_is_near() -> None:
    frame = points({1: [100.0], 2: [190.0, 200.0]}, "fieller")
    assert frame["speedup_low"].isna().all()
    wild = points({1: [100.0, 101.0], 2: [10.0, 1000.0]}, "fieller").iloc[1]
    assert wild[["speedup_low", "speedup_high"]].isna().all()
    assert wild["speedup"] > 0


def test_fieller_is_safe_at_any_size() -> None:
    for factor in (1e-60, 1e60):
        scaled = {nodes: [factor * rate for rate in rates] for nodes, rates in FEW.items()}
        found = points(scaled, "fieller").iloc[2]
        assert limits(found, "speedup") == pytest.approx(
            limits(points(FEW, "fieller").iloc[2], "speedup")
        )


@pytest.mark.parametrize(("two", "flagged"), [(202.0, True), (200.08, False), (200.12, True)])
def test_more_than_ideal_is_flagged_without_an_interval(two: float, flagged: bool) -> None:
    row = points({1: [100.0], 2: [two]}, "welch").iloc[1]
    assert (FlagCode.SUPERLINEAR in {flag.code for flag in row["flags"]}) == flagged
