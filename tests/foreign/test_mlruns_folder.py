"""A folder of MLflow is a table of its runs, in the form that MLflow 2.22 writes."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from hpc_train.base.errors import LogParseError
from hpc_train.foreign.runs_from_table import table_study
from hpc_train.foreign.table_file import ResultTable, is_result_table, read_table
from hpc_train.runs.run import JobState

META = """\
artifact_uri: file:///mlruns/7/{run_id}/artifacts
end_time: {end}
entry_point_name: ''
experiment_id: '7'
lifecycle_stage: {stage}
run_id: {run_id}
run_name: {name}
run_uuid: {run_id}
source_name: ''
source_type: 4
source_version: ''
start_time: 1795699387621
status: {status}
tags: []
user_id: root
"""
_FINISHED: Mapping[str, str | int] = {
    "name": "bert",
    "status": 3,
    "stage": "active",
    "end": 1795699388621,
}
_PARAMS = {"params/nodes": "2", "params/gpus_per_node": "4", "params/lr": "0.1"}
STEPS = "1795699387629 2.5 0\n1795699387631 0.5 1\n1795699387636 0.7 2\n1795699387637 0.6 3\n"


def make_run(
    root: Path, run_id: str, files: Mapping[str, str], meta: Mapping[str, str | int] = _FINISHED
) -> Path:
    """Write a run with these files of metrics and settings below `root`."""
    experiment = root / "7"
    meta = {**_FINISHED, **meta, "run_id": run_id}
    for folder in ("params", "metrics", "tags"):
        (experiment / run_id / folder).mkdir(parents=True)
    (experiment / "meta.yaml").write_text("experiment_id: '7'\nname: bert\n")
    run = experiment / run_id
    (run / "meta.yaml").write_text(META.format(**meta))
    for name, text in {**_PARAMS, **files}.items():
        path = run / (name if "/" in name else f"metrics/{name}")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return run


def cells(table: ResultTable) -> list[dict[str, str]]:
    return [dict(zip(table.names, row, strict=True)) for _, row in table.rows]


def test_runs_are_rows(tmp_path: Path) -> None:
    make_run(
        tmp_path,
        "a1",
        {name: STEPS for name in ("step_time", "loss", "memory", "metrics/train/f1")},
        {"name": "one"},
    )
    (row,) = cells(read_table(tmp_path))
    assert row == {
        "run": "one",
        "state": "FINISHED",
        "wall_s": "1.0",
        "params.nodes": "2",
        "params.gpus_per_node": "4",
        "params.lr": "0.1",
        # The median without the first, the last, the largest.
        "metrics.step_time": "0.6",
        "metrics.loss": "0.6",
        "metrics.memory": "2.5",
        "metrics.train/f1": "0.6",
    }


@pytest.mark.parametrize("below", ["", "7", "7/a1"])
def test_all_experiments_or_one_or_a_run(tmp_path: Path, below: str) -> None:
    make_run(tmp_path, "a1", {"step_time": STEPS})
    assert is_result_table(tmp_path / below)
    assert len(read_table(tmp_path / below).rows) == 1


def test_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for run_id in ("a1b2c3d4e5", "f6a7b8c9d0"):
        make_run(tmp_path, run_id, {"step_time": STEPS})
    make_run(tmp_path, "c0", {"step_time": STEPS}, {"name": "other"})
    names = [row["run"] for row in cells(read_table(tmp_path))]
    assert names == ["bert a1b2c3d4", "other", "bert f6a7b8c9"]


def test_states_and_deleted_runs(tmp_path: Path) -> None:
    for number, run_id in enumerate(("a", "b", "c", "d", "e"), start=1):
        make_run(
            tmp_path,
            run_id,
            {"params/nodes": str(number), "step_time": STEPS},
            {"name": run_id, "status": number},
        )
    make_run(tmp_path, "f", {"step_time": STEPS}, {"name": "f", "stage": "deleted"})
    study, records = table_study([read_table(tmp_path)])
    assert [run.state for run in study.runs] == [
        state.value
        for state in (
            JobState.RUNNING,
            JobState.PENDING,
            JobState.COMPLETED,
            JobState.FAILED,
            JobState.CANCELLED,
        )
    ]
    assert {record.value for record in records} == {0.6}
    assert [run.sizes["nodes"] for run in study.runs] == [1, 2, 3, 4, 5]
    assert any("first value; of memory" in n and "1 deleted runs" in n for n in study.notes)


def test_values_that_are_not_finite(tmp_path: Path) -> None:
    times = "1 9 0\n2 inf 1\n3 0.5 2\n"
    make_run(
        tmp_path, "a", {"step_time": times, "loss": "1 0.5 0\n2 nan 1\n", "accuracy": "1 nan 0\n"}
    )
    table = read_table(tmp_path)
    (row,) = cells(table)
    assert row["metrics.step_time"] == "0.5"
    # The loss that the training ended with is no number, and an earlier one is not its result.
    assert (row["metrics.loss"], row["metrics.accuracy"]) == ("nan", "nan")
    study, records = table_study([table])
    assert {(one.metric, one.value, one.variant) for one in records} == {
        ("step_time", 0.5, ""), ("not_finite", 1.0, "loss"),
    }  # fmt: skip
    assert any("accuracy: 'nan' is not a number" in note for note in study.notes)
    assert any("not used: " in note and "metrics/step_time" in note for note in study.notes)


def test_steps_are_ordered_and_a_line_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    make_run(
        tmp_path, "a", {"loss": "5 3.0 30\n4 1.0 10\n6 2.0 20\n7 0.5 40", "step_time": "1 0.5\n"}
    )
    (row,) = cells(read_table(tmp_path))
    assert (row["metrics.loss"], row["metrics.step_time"]) == ("3.0", "0.5")


@pytest.mark.parametrize("line", ["x 1 2", "1 fast 2", "1", "1 2 three"])
def test_a_line_that_is_none_of_mlflow(tmp_path: Path, line: str) -> None:
    run = make_run(tmp_path, "a", {"step_time": f"1 0.5 0\n{line}\n"})
    with pytest.raises(LogParseError) as refused:
        read_table(tmp_path)
    assert f"{run / 'metrics' / 'step_time'}:2: {line!r} is not a line" in refused.value.message
