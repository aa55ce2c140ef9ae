"""The runs of a report in JSON -> the run table."""

from math import nan

import pytest

from hpc_train.base.errors import ReportError
from hpc_train.scaling.runs import COLUMNS, stored_runs

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
