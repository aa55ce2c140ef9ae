"""One job given twice is an error that names both places."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.base.errors import LogParseError
from hpc_train.foreign.runs_from_table import table_study
from hpc_train.foreign.table_file import read_table
from hpc_train.logs.record import Record
from hpc_train.runs.expected_runs import ExpectedStudy


def written(folder: Path, **contents: str) -> list[Path]:
    paths = [folder / f"{name}.csv" for name in contents]
    for path, text in zip(paths, contents.values(), strict=True):
        path.write_text(text)
    return paths


def studied(paths: list[Path]) -> tuple[ExpectedStudy, list[Record]]:
    return table_study([read_table(path) for path in paths])


HEAD = "nodes,gpus_per_node,samples_per_second"


def test_two_jobs_that_failed_alike_are_two_jobs(tmp_path: Path) -> None:
    study, _ = studied(written(tmp_path, a=f"{HEAD},state\n2,8,,FAILED\n2,8,,FAILED\n"))
    assert [(run.state, run.repetition) for run in study.runs] == [("FAILED", 1), ("FAILED", 2)]
    with pytest.raises(LogParseError, match=r"a\.csv:3: the same row as .*a\.csv:2: one job"):
        studied(written(tmp_path, a=f"{HEAD}\n2,8,9\n2,8,9\n"))


def test_jobs_under_other_conditions_are_no_repetitions(tmp_path: Path) -> None:
    study, _ = studied(written(tmp_path, a=f"{HEAD},torch\n1,8,9,2.8\n1,8,9,2.9\n1,8,8,2.9\n"))
    assert [run.repetition for run in study.runs] == [1, 1, 2]


def test_sizes_in_another_order_of_columns_are_the_same_point(tmp_path: Path) -> None:
    other = "gpus_per_node,nodes,samples_per_second\n8,2,9.5\n"
    study, _ = studied(written(tmp_path, a=f"{HEAD}\n2,8,9\n", b=other))
    assert [run.repetition for run in study.runs] == [1, 2]
