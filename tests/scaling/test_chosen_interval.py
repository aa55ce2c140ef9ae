from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from hpc_train.scaling.run_flags import FlagCode
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from tests.scaling.arrays import welch
from tests.scaling.studies import expected, rate, study

Rates = dict[int, list[float]]
FEW: Rates = {1: [100.0, 103.0, 99.0], 2: [190.0, 180.0, 201.0, 188.0], 4: [330.0, 345.0]}


def points(rates: Rates) -> pd.DataFrame:
    runs, records = [], []
    for nodes, values in rates.items():
        for number, value in enumerate(values):
            name = f"n{nodes}-{number}"
            runs.append(expected(name, nodes=nodes))
            records += rate(name, value, 64)
    asked = study(runs)
    return speedup_frame(run_frame(asked, records), asked)


def limits(row: pd.Series[float], name: str) -> list[float]:
    return [float(row[f"{name}{end}"]) for end in ("", "_low", "_high")]


def _single(a: list[float], b: list[float]) -> list[float]:
    return [float(limit) for limit in welch(np.array(a), np.array(b), 0.95)]


def times(rates: list[float]) -> list[float]:
    return [1 / rate for rate in rates]


def test_every_ratio_has_welchs_interval() -> None:
    base, two, four = (times(FEW[nodes]) for nodes in (1, 2, 4))
    speedup, doubled = (_single(first, four) for first in (base, two))
    row = points(FEW).iloc[2]
    value, low, high = speedup
    rising = [(1 / limit - 1 / 4) / (1 - 1 / 4) for limit in (value, high, low)]
    assert limits(row, "speedup") == pytest.approx(speedup)
    assert limits(row, "efficiency") == pytest.approx([limit / 4 for limit in speedup])
    assert limits(row, "doubling") == pytest.approx([limit / 2 for limit in doubled])
    assert limits(row, "karp_flatt") == pytest.approx(rising)


@pytest.mark.parametrize(("two", "flagged"), [(202.0, True), (200.08, False), (200.12, True)])
def test_more_than_ideal_is_flagged_without_an_interval(two: float, flagged: bool) -> None:
    row = points({1: [100.0], 2: [two]}).iloc[1]
    assert (FlagCode.SUPERLINEAR in {flag.code for flag in row["flags"]}) == flagged
