"""A run of the trainer that ran out of GPU memory: its diagnosis names the strategy that fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hpc_train.model.submission import JobState
from hpc_train.pipeline.diagnose import diagnosis_of
from tests.pipeline.runs_of import written

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total "
    "capacity of {} of which 1.00 GiB is free. Including non-PyTorch memory, this process has "
    "23.10 GiB memory in use. Of the allocated memory 21.00 GiB is allocated by PyTorch, and "
    "500.00 MiB is reserved by PyTorch but unallocated.\n"
)
TRAINER = ["python", "-m", "hpc_train.workload.train"]


def advice(home: Path, capacity: str, batch: int, trainer: dict[str, Any], ranks: int) -> str:
    job = {
        "command": [*TRAINER, "--global-batch-size", str(batch), "--optimizer", "adamw"],
        "trainer": {"precision": "bf16", **trainer},
        "resources": {"tasks_per_node": ranks},
        "launcher": "torchrun",
    }
    run = written(home, "a", OOM.format(capacity), job=job, exit_code=1)
    root = diagnosis_of(replace(run, state=JobState.FAILED)).root
    assert root is not None and root.id == "cuda_oom"
    return root.advice


def test_the_simplest_strategy_that_fits_is_named(tmp_path: Path) -> None:
    said = advice(tmp_path, "24.50 GiB", 2, {"model": "gpt-1.5b", "strategy": "ddp"}, 2)
    assert "By the formulas of `hpctrain advise`, strategy fsdp fits on 2 ranks" in said
    assert said.endswith("of 24.5 GiB.")


def test_more_ranks_if_none_fits_on_as_many(tmp_path: Path) -> None:
    said = advice(tmp_path, "13.50 GiB", 8, {"model": "gpt-1.5b", "strategy": "fsdp"}, 2)
    assert "strategy fsdp fits on 8 ranks" in said


def test_smaller_micro_batches_before_more_ranks(tmp_path: Path) -> None:
    said = advice(tmp_path, "23.50 GiB", 256, {"model": "gpt-124m", "strategy": "ddp"}, 2)
    assert "ddp fits with micro-batches of" in said


@pytest.mark.parametrize(
    ("capacity", "model"), [("79.15 GiB", "gpt-tiny"), ("79.15 GiB", "cnn"), ("many", "gpt-1.5b")]
)
def test_nothing_is_said_where_the_formulas_do_not_explain_it(
    tmp_path: Path, capacity: str, model: str
) -> None:
    assert "formulas" not in advice(tmp_path, capacity, 8, {"model": model}, 2)
