"""`KEY=VALUE` selects runs by axes, sizes and conditions, and by no other column."""

from __future__ import annotations

from math import nan

import pandas as pd
import pytest

from hpc_train.base.errors import ReportError
from hpc_train.scaling.run_selection import selected, stored_runs
from hpc_train.scaling.runs import COLUMNS

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


@pytest.mark.parametrize(
    ("wanted", "series"),
    [
        ({"lr": "2"}, ["all", "all"]),
        ({"train.lr": "2"}, ["lr=2", "lr=2"]),
        ({"nodes": "1"}, ["lr=1"]),
        ({"model": "m"}, ["lr=1", "lr=2"]),
    ],
)
def test_a_selected_axis_is_no_part_of_the_name(wanted: dict[str, str], series: list[str]) -> None:
    conditions = [{"model": "m"}, {"model": "m"}, None]
    runs = RUNS.assign(
        conditions=pd.Series(conditions, dtype=object), **{"axis.train.lr": [1, 2, 2]}
    )
    assert selected(runs, wanted, "s")["series"].tolist() == series


def test_an_axis_precedes_a_size_of_its_name() -> None:
    runs = RUNS.assign(**{"axis.nodes": ["x", "y", "x"]})
    assert selected(runs, {"nodes": "x"}, "s")["run_id"].tolist() == ["a", "c"]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"lr": "3"}, "s: no run with lr=3; lr is 1, 2"),
        ({"nodes": "4"}, "s: no run with nodes=4; nodes is 1, 2"),
        ({"lr": "1", "nodes": "2"}, "s: no run with nodes=2; nodes is 1"),
        (
            {"node": "1"},
            "s: nothing is called 'node'; did you mean 'nodes'?; known: lr, ",
        ),
    ],
)
def test_the_values_and_names_that_are_there_are_listed(
    wanted: dict[str, str], message: str
) -> None:
    with pytest.raises(ReportError) as caught:
        selected(RUNS, wanted, "s")
    assert caught.value.message.startswith(message)


STORED = {
    "run_id": "a", "series": "all", "state": "COMPLETED", "nodes": 1, "gpus_per_node": 4,
    "tasks_per_node": None, "ranks": 4, "samples_per_second": None,
}  # fmt: skip


def test_runs_of_a_report_have_the_types_of_the_run_table() -> None:
    other = {**STORED, "run_id": "b", "samples_per_second": 5, "tasks_per_node": 2, "axis.lr": 1}
    frame = stored_runs([STORED, other], "s")
    assert set(COLUMNS) < set(frame.columns)
    assert frame["samples_per_second"].tolist() == [pytest.approx(nan, nan_ok=True), 5.0]
    assert [str(frame[name].dtype) for name in ("nodes", "tasks_per_node", "repetition")] == [
        "Int64"
    ] * 3
    assert frame["tasks_per_node"].isna().tolist() == [True, False]
    assert frame["axis.lr"].tolist()[1] == 1
    assert stored_runs([], "s").empty


@pytest.mark.parametrize("name", ["run_id", "series", "state"])
def test_a_report_without_a_needed_key_is_refused(name: str) -> None:
    rest = {key: value for key, value in STORED.items() if key != name}
    called = "\\?" if name == "run_id" else "a"
    with pytest.raises(ReportError, match=f"^s: runs: {called} has no '{name}'"):
        stored_runs([STORED, rest], "s")
