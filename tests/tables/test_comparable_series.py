"""Series of the same work share one baseline: the fastest point of the smallest size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_train.errors import ReportError
from hpc_train.model.quality_flag import LOSS_LOST
from hpc_train.model.study import Gates
from hpc_train.reports.gate_verdicts import GateInputs, verdicts
from hpc_train.reports.plain_rows import plain_rows
from hpc_train.tables.deciding_runs import deciding
from hpc_train.tables.duplicate_runs import LEAST, marks_of, refuse_copies
from hpc_train.tables.record_arrays import record_arrays
from hpc_train.tables.runs import run_frame
from hpc_train.tables.speedup import speedup_frame
from tests.tables.studies import expected, foreign, rate, record, study

pytestmark = pytest.mark.slower

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


def marks(count: int = LEAST, **changed: Any) -> dict[str, int]:
    """Return the marks of a log and of another one with changed values."""
    given = {"metric": "step_time", "value": 0.5, "scope": "global", "rank": 0, "variant": ""}
    records = [
        record(run, **{**given, **more}, line=line, step=line)
        for run, more in (("a", {}), ("b", changed))
        for line in range(1, count + 1)
    ]
    return marks_of(record_arrays(records), [foreign("a"), foreign("b")])


def test_a_copy_is_refused() -> None:
    with pytest.raises(ReportError, match="a and b hold the same measurements, line by line"):
        refuse_copies(marks())


@pytest.mark.parametrize(
    "changed", [{"value": 0.25}, {"rank": 1}, {"metric": "epoch_time"}, {"variant": "mean"}]
)
def test_logs_that_differ_are_two_jobs(changed: dict[str, Any]) -> None:
    found = marks(**changed)
    assert len(found) == 2
    refuse_copies(found)


def test_few_measurements_may_be_equal_by_chance() -> None:
    assert marks(LEAST - 1) == {}


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
