"""The runs that decide gates: verdicts from them are those from all runs."""

from __future__ import annotations

from typing import Any

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from hpc_train.model.quality_flag import LOSS_LOST
from hpc_train.model.study import Gates
from hpc_train.reports.gate_verdicts import GateInputs, verdicts
from hpc_train.reports.plain_rows import plain_rows
from hpc_train.tables.deciding_runs import deciding

VALUE = st.sampled_from([None, 0.1, 0.9, 0.93])
RUN = st.tuples(
    st.integers(1, 3),
    st.sampled_from(["COMPLETED", "COMPLETED", "FAILED", "UNPARSED", "EXCLUDED"]),
    VALUE,
    VALUE,
    st.booleans(),
)


def table(cells: list[Any]) -> pd.DataFrame:
    rows = [
        {
            "run_id": f"r{place}", "series": "all", "nodes": nodes, "gpus_per_node": 4,
            "tasks_per_node": 4, "ranks": 4 * nodes, "gpus": 4 * nodes, "state": state,
            "problem": "", "accuracy": accuracy, "loss": loss, "samples_seen": None,
            "flags": (LOSS_LOST,) if lost else (),
        }
        for place, (nodes, state, accuracy, loss, lost) in enumerate(cells)
    ]  # fmt: skip
    frame: pd.DataFrame = pd.DataFrame(rows).astype({"accuracy": "float64", "loss": "float64"})
    return frame


@given(st.lists(RUN, min_size=1, max_size=12))
def test_gates_of_the_deciding_runs_are_those_of_all(cells: list[Any]) -> None:
    runs = table(cells)
    points = [
        {**row, "is_baseline": place == 0, "n_ok": 1, "flags": [], "not_ok": "", "note": ""}
        for place, row in enumerate(plain_rows(runs.drop_duplicates("nodes")))
    ]

    def found(own: pd.DataFrame) -> Any:
        inputs = GateInputs(runs=tuple(plain_rows(own)), busbw={"r0": 1.0, "r1": 2.0})
        return verdicts(Gates(), points, inputs)

    assert found(deciding(runs)) == found(runs)


def test_of_many_runs_without_accuracy_two_of_each_point_decide() -> None:
    runs = table([(1, "COMPLETED", None, None, False)] * 9 + [(2, "FAILED", None, None, False)] * 3)
    assert deciding(runs)["run_id"].tolist() == ["r0", "r1", "r9", "r10", "r11"]
