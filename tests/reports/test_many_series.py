"""A heap of logs has one series for each: what is said of them costs in proportion to them."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from hpc_train.model.quality_flag import Flag, FlagCode
from hpc_train.reports.baseline_sentences import baselines
from hpc_train.reports.caveats import flag_caveats, implausible_caveats
from hpc_train.reports.plain_rows import plain_rows
from hpc_train.reports.scaling_summary import answers
from hpc_train.tables.runs import run_frame
from hpc_train.tables.scaling_fits import fits
from hpc_train.tables.speedup import speedup_frame
from tests.tables.studies import expected, rate, study

SIZES = (1, 2)


class Counted(dict[str, Any]):
    """A row that counts how often somebody looks at a cell."""

    looks = 0

    def __getitem__(self, key: str) -> Any:
        Counted.looks += 1
        return super().__getitem__(key)


def points_of(series: int) -> pd.DataFrame:
    """Return series of two sizes, each faster on two nodes; every third has no result."""
    runs = [
        expected(f"{name}-{nodes}", nodes=nodes, gpus=4, axes={"nodes": nodes, "launcher": name})
        for name in (f"s{number}" for number in range(series))
        for nodes in SIZES
    ]
    records = [
        one
        for number, run in enumerate(runs)
        if number % 3
        for one in rate(run.run_id, 100.0 * (1 + number % 2), 64)
    ]
    asked = study(runs, baseline={"nodes": 1})
    return speedup_frame(run_frame(asked, records), asked)


def looks(says: Any, series: int) -> int:
    rows = [Counted(row) for row in plain_rows(points_of(series))]
    for row in rows:
        row["flags"] = [*row["flags"], Flag(FlagCode.UNIT, "140 s a step")]
    Counted.looks = 0
    assert list(says(rows))
    return Counted.looks


@pytest.mark.parametrize("says", [answers, baselines, implausible_caveats, flag_caveats])
def test_four_times_the_series_are_looked_at_four_times_as_often(says: Any) -> None:
    assert looks(says, 80) < 6 * looks(says, 20)


def test_each_series_has_laws_of_its_own() -> None:
    points = points_of(9)
    laws = fits(points)
    assert [law.series for law in laws][::2] == list(points["series"].unique())
    assert [law.points for law in laws if law.law == "usl"] == [0, 1, 2] * 3
