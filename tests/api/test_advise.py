"""hpc_train.advise: typed rows, the same report as the command, and wrong arguments."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hpc_train
from hpc_train.base.errors import ArgumentError, HpcTrainError

advise: Callable[..., Any] = hpc_train.advise
JOB = """\
name: gpt
command: [python, -m, hpc_train.trainer.train, --global-batch-size, "64", --steps, "1000"]
trainer: {model: gpt-124m, precision: bf16}
resources: {nodes: 1, gpus_per_node: 4, time: 5m}
"""
TABLE = "nodes,gpus_per_node,tasks_per_node,global_batch_size,step_time\n1,1,1,64,3.6\n"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "one.csv").write_text(TABLE)
    return tmp_path / "job.yaml"


def test_rows_have_typed_bounds(job: Path, tmp_path: Path) -> None:
    found = hpc_train.advise(
        job, site="juwels-booster", gpus=8, measured=tmp_path / "one.csv",
        results=tmp_path / "results",
    )  # fmt: skip
    best = found.recommended
    assert best is not None
    assert (best.strategy, best.ranks) == ("single", 1)
    assert best.end is not None
    assert best.end.high == pytest.approx(3600)
    assert {row.ranks for row in found.advice.rows} == {1, 2, 4, 8}
    assert "Recommended: single on 1 GPU" in found.text
    assert len(found.table) == len(found.advice.rows)
    assert found.title == "gpt on juwels-booster, booster (4 A100-40GB a node)"


def test_conditions_are_a_dict(job: Path, tmp_path: Path) -> None:
    found = hpc_train.advise(
        job, site="juwels-booster", conditions={"global_batch": 8}, results=tmp_path / "results"
    )
    assert {row.batch for row in found.advice.rows} == {8.0}
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("words", "kind", "message"),
    [
        ({"gpus": 0}, ArgumentError, "gpus"),
        ({"conditions": ["a"]}, ArgumentError, "conditions: Expected `dict"),
        ({"conditions": {"step": 3}}, HpcTrainError, "no condition 'step'"),
        ({"site": "perlmuter"}, HpcTrainError, "perlmuter"),
    ],
)
def test_wrong_arguments(job: Path, words: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        advise(job, **words)
