"""Tables as people type them: headings, units, comments, a column of GPUs alone."""

import os
from pathlib import Path

import pytest

from hpc_train.base.errors import LogParseError
from hpc_train.foreign.header import columns
from hpc_train.jobs.log_selection import Search
from hpc_train.reports.build import build_report
from hpc_train.reports.report_inputs import report_inputs
from hpc_train.reports.write_report import render_report
from tests.foreign.tables import read, values


@pytest.mark.parametrize(
    ("header", "size", "value"),
    [
        ("#GPU,Samples/s", {"ranks": 8, "gpus": 8}, ("samples_per_second", 500)),
        ("# Nodes,img/sec", {"nodes": 8}, ("samples_per_second", 500)),
        ("GPUs (total),Throughput (tok/s)", {"ranks": 8, "gpus": 8}, ("tokens_per_second", 500)),
        ("#node,images/s/GPU", {"nodes": 8}, ("samples_per_second", 4000)),
        ("ranks,images/s/GPU", {"ranks": 8}, ("samples_per_second", 500)),
        ("ranks,Step time (ms)", {"ranks": 8}, ("step_time", 0.5)),
        ("ranks,step_time_ms", {"ranks": 8}, ("step_time", 0.5)),
        ("ranks,Time to train [min]", {"ranks": 8}, ("time_to_train", 30000)),
        ("ranks,Epoch time (s)", {"ranks": 8}, ("epoch_time", 500)),
    ],
)
def test_headings_as_people_write_them(
    tmp_path: Path, header: str, size: dict[str, int], value: tuple[str, float]
) -> None:
    found = read(tmp_path, f"{header}\n8,500\n")
    assert found.study.runs[0].sizes == size
    assert values(found, value[0]) == [pytest.approx(value[1])]


def test_a_rate_of_one_gpu_of_equal_nodes_is_answered_with_its_assumption(tmp_path: Path) -> None:
    found = read(tmp_path, "nodes,img/s/GPU\n1,100\n4,80\n")
    text = " ".join(render_report(build_report(found), "text").split())
    assert "3.20 times 1 node, efficiency 80 %, reading 'img/s/GPU' as that of nodes of one" in text


def test_a_table_without_a_header_is_told_how_one_begins(tmp_path: Path) -> None:
    with pytest.raises(
        LogParseError, match=":1: no column of a known time, rate or loss"
    ) as caught:
        read(tmp_path, "Scaling of my cluster,,\nnodes,gpus,step_time\n1,8,9\n")
    assert "nodes,gpus_per_node,samples_per_second" in caught.value.hint


def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "table.csv")
    with pytest.raises(LogParseError, match="a pipe, not a file"):
        report_inputs([str(tmp_path / "table.csv")], Search(root=tmp_path / "none"))


def kinds(*names: str) -> list[str]:
    return [column.kind for column in columns(names, "t.csv:3")]


@pytest.mark.parametrize(
    ("ambiguous", "beside"),
    [
        ("batch_size", "global_batch_size"),
        ("Batch", "gbs"),
        ("throughput", "tokens_per_second_per_gpu"),
        ("time", "step_time"),
    ],
)
def test_an_ambiguous_column_is_not_used_beside_one_that_is_not(
    ambiguous: str, beside: str
) -> None:
    other = "samples_per_second" if beside == "step_time" else "epoch_time"
    assert kinds("nodes", other, ambiguous, beside)[2:] == ["unused", "measure"]
    assert kinds("nodes", other, ambiguous)[2:] == ["measure"]


def test_the_scaling_is_read_beside_other_axes(tmp_path: Path) -> None:
    text = "nodes,step_time,launcher,scaling\n1,2,srun,weak\n1,3,mpirun,Weak scaling\n4,3,srun,"
    study = read(tmp_path, text).study
    assert [run.axes for run in study.runs] == [{"launcher": n} for n in ("srun", "mpirun", "srun")]
    assert study.scaling == "weak"
    study = read(tmp_path, f"{text}strong\n").study
    assert study.scaling is None
    assert [run.axes["scaling"] for run in study.runs] == ["weak", "weak", "strong"]
