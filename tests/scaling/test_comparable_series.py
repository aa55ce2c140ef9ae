"""Series of the same work share one baseline: the fastest point of the smallest size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest

from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from tests.scaling.studies import expected, rate, study

Rates = Mapping[str, Mapping[int, float]]
TWO: Rates = {"A": {1: 10.0, 2: 18.0}, "B": {1: 12.0, 2: 20.0}}


def points(rates: Rates, batches: Mapping[int, int], **fields: Any) -> pd.DataFrame:
    named = {f"{s}{n}-{k}": (s, n, x + k / 10) for s, own in rates.items()
             for n, x in own.items() for k in (0, 1)}  # fmt: skip
    runs = [expected(name, nodes=n, axes={"nodes": n, "case": s})
            for name, (s, n, _) in named.items()]  # fmt: skip
    asked = study(runs, **fields)
    records = [r for name, (_, n, x) in named.items() for r in rate(name, x, batches[n])]
    return speedup_frame(run_frame(asked, records), asked)


@pytest.mark.parametrize("batches", [{1: 64, 2: 64}, {1: 32, 2: 64}], ids=["strong", "weak"])
def test_the_fastest_of_the_smallest_points_is_common(batches: Mapping[int, int]) -> None:
    found = points(TWO, batches)
    common = found[found["is_common_baseline"]]
    assert common[["series", "nodes"]].to_numpy().tolist() == [["case=B", 1]]
    assert found["common_speedup"].tolist() == pytest.approx(
        [10 / 12, 18 / 12, 1, 20 / 12], rel=0.01
    )


def test_series_of_other_sizes_are_comparable_if_the_batch_per_rank_is_equal() -> None:
    found = points({"A": {1: 10.0, 2: 18.0}, "B": {2: 20.0, 4: 39.0}}, {1: 8, 2: 16, 4: 32})
    assert set(found["regime"]) == {"weak"}
    assert found["common_speedup"].notna().all()


def test_one_series_and_a_mixed_regime_have_no_common_speedup() -> None:
    alone = points({"A": TWO["A"]}, {1: 64, 2: 64})
    mixed = points({s: {1: 10.0, 2: 18.0, 4: 30.0} for s in "AB"}, {1: 64, 2: 96, 4: 96})
    assert set(mixed["regime"]) == {"mixed"}
    for found in (alone, mixed):
        assert found["common_speedup"].isna().all()
        assert not found["is_common_baseline"].any()
