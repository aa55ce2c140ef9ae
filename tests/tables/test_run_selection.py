"""`KEY=VALUE` selects runs by axes, sizes and conditions, and by no other column."""

from __future__ import annotations

import pandas as pd
import pytest

from hpc_train.errors import ReportError
from hpc_train.tables.run_selection import selected

RUNS: pd.DataFrame = pd.DataFrame(
    {
        "run_id": ["a", "b", "c"],
        "series": ["lr=1", "lr=2", "lr=2"],
        "axis.lr": [1, 2, 2],
        "nodes": pd.array([1, 2, pd.NA], dtype="Int64"),
        "state": ["COMPLETED"] * 3,
        "conditions": [{"torch": "2.9"}, {"torch": "2.8"}, None],
    }
)


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        ({"lr": "2"}, ["b", "c"]),
        ({"nodes": "2"}, ["b"]),
        ({"resources.nodes": "1"}, ["a"]),
        ({"torch": "2.9"}, ["a"]),
        ({"lr": "2", "nodes": "2"}, ["b"]),
    ],
)
def test_axes_sizes_and_conditions_select(wanted: dict[str, str], ids: list[str]) -> None:
    assert selected(RUNS, wanted, "s")["run_id"].tolist() == ids


@pytest.mark.parametrize("key", ["state", "run_id", "series"])
def test_other_columns_do_not(key: str) -> None:
    with pytest.raises(ReportError, match=f"s: nothing is called '{key}'"):
        selected(RUNS, {key: "x"}, "s")
