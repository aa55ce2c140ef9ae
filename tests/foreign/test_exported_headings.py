"""Tables that MLflow, Weights & Biases and sacct export."""

from pathlib import Path

import pytest

from hpc_train.base.errors import LogParseError
from hpc_train.foreign.runs_from_table import table_study
from hpc_train.foreign.table_file import read_table
from hpc_train.runs.expected_runs import ExpectedStudy

MLFLOW = (
    "run_id,experiment_id,status,artifact_uri,start_time,end_time,metrics.step_time,metrics.f1,"
    "params.nodes,params.lr,tags.mlflow.user\n"
    "a,1,FINISHED,file:///x,1,2,0.5,0.91,1,0.1,me\n"
    "b,1,FAILED,file:///y,1,2,0.3,0.93,2,0.1,me\n"
)
PROJECT = (
    '"Name","State","Notes","User","Tags","Created","Runtime","Sweep","nodes","step_time",'
    '"val/f1"\n'
    '"one","finished","","me","","2024-01-01","120","","1","0.5","0.91"\n'
    '"two","crashed","","me","","2024-01-02","60","","2","0.3","0.93"\n'
)
SACCT = (
    "JobID,JobName,State,ExitCode,Elapsed,NNodes,step_time\n"
    "7,a,COMPLETED,0:0,00:10:00,1,0.5\n8,a,FAILED,1:0,00:01:00,2,0.3\n"
)


def study(folder: Path, text: str) -> ExpectedStudy:
    """Return the study of a table with this text."""
    path = folder / "table.csv"
    path.write_text(text)
    return table_study([read_table(path)])[0]


@pytest.mark.parametrize("text", [MLFLOW, PROJECT, SACCT], ids=["mlflow", "project", "sacct"])
def test_an_export_is_a_table_of_jobs(tmp_path: Path, text: str) -> None:
    found = study(tmp_path, text)
    assert [(run.state, run.sizes["nodes"]) for run in found.runs] == [
        ("COMPLETED", 1),
        ("FAILED", 2),
    ]
    assert {key for run in found.runs for key in run.axes} <= {"lr"}


def test_the_runtime_of_a_project_is_the_wall_time(tmp_path: Path) -> None:
    assert [run.wall_s for run in study(tmp_path, PROJECT).runs] == [120, 60]


def test_a_number_that_changes_with_the_size_makes_no_series(tmp_path: Path) -> None:
    found = study(tmp_path, MLFLOW.replace("2,0.1,me", "2,0.2,me"))
    assert [run.axes for run in found.runs] == [{}, {}]
    assert any("not used" in note and "params.lr" in note for note in found.notes)


def test_an_axis_that_differs_in_each_row_is_named(tmp_path: Path) -> None:
    head = "nodes,step_time,kind\n"
    notes = study(tmp_path, head + "1,0.5,a\n1,0.3,b\n1,0.2,c\n").notes
    assert any("separate series in 'kind' (3 values);" in note for note in notes)
    # It would leave each row alone.
    for sizes in ("1 2 4", "1 1 4"):
        texts = (f"{n},0.{n},{kind}\n" for n, kind in zip(sizes.split(), "abc", strict=True))
        remark = study(tmp_path, head + "".join(texts))
        assert "'kind' as a remark (no two rows share a text)" in remark.assumed
        assert [run.axes for run in remark.runs] == [{}, {}, {}]
    for rows in (
        "1,0.5,good\n2,0.3,\n4,0.2,bad\n",
        "1,0.5,\n1,0.6,\n2,0.3,\n2,,node down\n",
        "1,0.5,\n1,0.6,one node slow\n2,0.3,\n2,0.3,\n",
    ):
        assert {str(run.axes) for run in study(tmp_path, head + rows).runs} == {"{}"}
    variants = study(tmp_path, head + "1,0.5,\n1,0.4,fused\n2,0.3,\n")
    assert [run.axes for run in variants.runs] == [{}, {"kind": "fused"}, {}]
    notes = study(tmp_path, head + "1,0.5,a\n2,0.3,a\n4,0.2,b\n").notes
    assert not any("separate series" in note for note in notes)


@pytest.mark.parametrize("column", ["step", "Epoch"])
def test_a_row_for_each_step_is_no_table_of_jobs(tmp_path: Path, column: str) -> None:
    with pytest.raises(LogParseError, match=f"one row for each job; the column '{column}'"):
        study(tmp_path, f"nodes,{column},step_time\n1,1,0.5\n1,2,0.5\n")
