"""A table that people already have -> the speedup table; and every way in which it can be wrong."""

from pathlib import Path
from typing import Any

import pytest

from hpc_train.base.errors import LogParseError
from hpc_train.jobs.log_selection import Search
from hpc_train.reports.build import build_report
from hpc_train.reports.report_inputs import report_inputs
from hpc_train.reports.write_report import render_report
from tests.cases import cases
from tests.foreign.tables import read, rows, values

HEAD = "nodes,gpus_per_node,tasks_per_node,global_batch_size,samples_per_second"


def test_states_and_reasons_of_rows(tmp_path: Path) -> None:
    text = (
        "name,nodes,gpus_per_node,samples_per_second,state,problem,exclude\n"
        "a,1,1,10,ok,,\nb,2,1,20,,,node was hot\nc,4,1,,OUT_OF_MEMORY,no room,\nd,8,1,,,,\n"
        "e,16,1,1,CANCELLED by 1000,,\nf,32,1,,pending,,\ng,64,1,1,CANCELLED+,,\n"
    )
    found = read(tmp_path, text)
    runs = build_report(found).run_rows
    ended = {row["run_id"]: (row["state"], row["problem"]) for row in runs}
    assert ended["a"] == ("COMPLETED", "")
    assert ended["b"] == ("EXCLUDED", "node was hot")
    assert ended["c"] == ("OUT_OF_MEMORY", "no room")
    assert ended["d"][0] == "UNPARSED"
    assert ended["d"][1].endswith("table.csv:5: no time and no rate in this row")
    assert ended["e"][0] == "CANCELLED"
    # sacct cuts its columns.
    assert ended["g"][0] == "CANCELLED"
    assert [run.run_id for run in found.study.unfinished] == ["f"]


def test_other_columns_are_conditions_axes_or_named_as_unused(tmp_path: Path) -> None:
    text = f"{HEAD},torch,launcher,speedup,,Restarts\n1,2,2,8,10,2.8,srun,1.0,0,1\n"
    found = read(tmp_path, text)
    (run,) = found.study.runs
    assert (run.conditions, run.axes, run.restarts) == ({"torch": "2.8"}, {"launcher": "srun"}, 1)
    assert "not used: speedup, column 9 (without a name)" in " ".join(found.study.notes)
    assert rows(found)[0]["series"] == "launcher=srun"


def test_sizes_that_follow_from_others(tmp_path: Path) -> None:
    text = "nodes,gpus,world_size,time_to_train\n2,8,,1\n2,8,16,1\n,8,,1\n"
    sizes = [run.sizes for run in read(tmp_path, text).study.runs]
    assert sizes[0] == {"nodes": 2, "gpus_per_node": 4, "tasks_per_node": 4, "ranks": 8}
    assert sizes[1] == {"nodes": 2, "gpus_per_node": 4, "tasks_per_node": 8, "ranks": 16}
    assert sizes[2] == {"ranks": 8, "gpus": 8}


@pytest.mark.parametrize(
    "text",
    [
        f"\ufeff{HEAD}\r\n1,8,8,512,1000\r\n\r\n",
        f"{HEAD}\n1,8,8,512,1000\n,,,,\n",
        f"{HEAD}\n1,8,8,512,1e3\n".replace(",", ";"),
        f"{HEAD}\n1,8,8,512,+1000.\n".replace(",", "\t"),
        'Nodes,"GPUs per node",tasks-per-node,Global batch size,samples_per_second [1/s]\n'
        '1.0,8,8,512,"1000"\n',
    ],
)
def test_spellings_of_one_table(tmp_path: Path, text: str) -> None:
    found = read(tmp_path, text)
    (run,) = found.study.runs
    assert run.sizes == {"nodes": 1, "gpus_per_node": 8, "tasks_per_node": 8, "ranks": 8}
    assert values(found, "samples_per_second") == [1000]


def test_rates_of_one_gpu_are_those_of_all(tmp_path: Path) -> None:
    """PyTorch's benchmark of DDP@bf69c14, ResNet-50: 15.35 times as fast on 16 GPUs."""
    head = "nodes,gpus_per_node,samples_per_second_per_gpu\n"
    points = rows(read(tmp_path, head + "1,1,319\n1,8,307\n2,8,306\n"))
    assert [point["throughput"]["value"] for point in points] == [319, 8 * 307, 16 * 306]
    assert points[-1]["speedup"]["value"] == pytest.approx(15.35, abs=0.005)


ROW = f"{HEAD}\n1,8,8,512,"
BAD: dict[str, tuple[str | bytes, str]] = {
    "loose comma": (f"{ROW}1234,5\n", ":2: 6 cells, but the header has 5 columns; a decimal comma"),
    "zero": (f"{ROW}0\n", ":2: samples_per_second: 0 must be above 0; leave the cell empty"),
    "huge": (f"{ROW}1e400\n", "1e400 is too large"),
    "percent": ("gpus,step_time,accuracy\n1,2,76\n2,1,176.3\n", ":3: accuracy: 176.3 must"),
    "fraction": ("gpus,step_time,mfu\n1,3,.4\n2,2,.5\n4,1,1.4\n", ":4: mfu: 1.4 must"),
    "two commas": ('gpus,step_time\n1,"0,5"\n2,"1,234.5"\n', "a decimal comma, and '1,234.5' thou"),
    "other unit of a cell": (f"{ROW}12 GB/s\n", "'12 GB/s' is not a number with the unit of its"),
    "no nodes": (f"{HEAD}\n0,8,8,512,9\n", ":2: nodes: 0 must be a whole number from 1 up"),
    "contradiction": (f"gpus,{HEAD}\n9,1,8,8,512,9\n", ":2: size: gpus 9 is not nodes 1 x gpus"),
    "uneven": ("nodes,gpus,step_time\n2,9,1\n", "gpus 9 is not a multiple of nodes 2"),
    "sizeless row": (f"{HEAD}\n,,,512,9\n", ":2: no size in this row"),
    "twice": (f"{HEAD},nodes\n1,8,8,512,9,1\n", ":1: duplicate column 'nodes'"),
    "no size": ("launcher,step_time\nsrun,1\n", ":1: no column of a size"),
    "no measurement": ("nodes,accuracy\n1,1\n", ":1: no column of a measurement"),
    "typo": ("nodes,sample_per_second\n1,1\n", "'sample_per_second'; did you mean 'samples_per_"),
    "other unit": ("nodes,step_time (d)\n1,1\n", ":1: 'step_time (d)': 'd' is not a unit of"),
    "of another kind": ("nodes,throughput (GB/s)\n1,1\n", "'GB/s' is not a unit of samples_per"),
    "unit in milliseconds": ("nodes,step_time_ms\n1,1 d\n", "the unit of its column, ms"),
    "empty": ("", "table.csv: empty"),
    "header only": (f"{HEAD}\n", ":1: a header, and no row below it"),
    "utf-16, cut": (f"{ROW}9\n".encode("utf-16")[:-1], ":2: not text in UTF-8"),
    "utf-16, ragged": (f"{ROW}9\n1\n".encode("utf-16"), ":3: 1 cells, but the header has 5"),
    "latin": (f"{HEAD},model\n1,8,8,512,9,é\n".encode("latin-1"), ":2: not text in UTF-8"),
    "binary": (b"nodes,\0\1\2", ":1: not text in UTF-8"),
    "short row": (f"{HEAD}\n1,8\n", ":2: 2 cells, but the header has 5"),
    "quote": (f'{HEAD}\n1,8,8,512,"9\n', "not valid CSV"),
    "state": (f"{HEAD},state\n1,8,8,512,9,FAILD\n", "not a state; did you mean 'FAILED'?"),
    "same name": (f"run,{HEAD}\na,1,8,8,512,9\na,1,8,8,512,9\n", ":3: a second run called 'a'"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, case: str) -> None:
    text, said = BAD[case]
    with pytest.raises(LogParseError) as caught:
        read(tmp_path, text)
    assert said in caught.value.message, caught.value.message
    assert str(tmp_path / "table.csv") in caught.value.message


@pytest.mark.parametrize(
    ("text", "wanted", "assumed"), cases("foreign/csv_tables.yaml", "a_table_is_read")
)
def test_a_table_is_read_with_what_was_assumed(
    tmp_path: Path, text: str, wanted: dict[str, list[Any]], assumed: str
) -> None:
    found = read(tmp_path, text)
    for name, expected in wanted.items():
        if name == "problem":
            assert [
                f"{run.state} {run.problem}".split(":")[-1] for run in found.study.runs
            ] == expected
        else:
            assert values(found, name) == pytest.approx(expected)
    assert found.study.assumed == assumed
    assert ("accuracy_std" in text) is ("not used, because it is" in str(found.study.notes))


def test_our_own_report_is_recognised(tmp_path: Path) -> None:
    built = build_report(read(tmp_path, f"{HEAD}\n1,8,8,512,1000\n"))
    with pytest.raises(LogParseError, match=":1: this is a report that hpctrain wrote"):
        read(tmp_path, render_report(built, "csv"))


def test_two_tables_make_one_report(tmp_path: Path) -> None:
    for name, rate in (("a", 10), ("b", 30)):
        (tmp_path / f"{name}.csv").write_text(f"{HEAD}\n1,1,1,8,{rate}\n")
    words = [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    found = report_inputs(words, Search(root=tmp_path / "none"))
    assert [run.run_id for run in found.study.runs] == ["a: row 1", "b: row 1"]
    assert [run.repetition for run in found.study.runs] == [1, 2]


def test_tables_and_logs_make_none(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("x\n")
    (tmp_path / "a.csv").write_text(f"{HEAD}\n1,1,1,8,9\n")
    words = [str(tmp_path / "a.csv"), str(tmp_path / "a.log")]
    with pytest.raises(LogParseError, match="cannot be put into one report"):
        report_inputs(words, Search(root=tmp_path / "none"))
