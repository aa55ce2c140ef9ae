"""What needs a GPU: strategies over NCCL, several ranks on one GPU, and its memory by kind."""

import json
import math

import pytest

from hpc_train.advice.program import gpt_parameters
from hpc_train.jobs.strategies import GPT_SHAPES
from tests.trainer.launching import events, finish, meeting_point, start, trainer
from tests.trainer.test_strategies import EXACT, TOLERANCE

pytestmark = pytest.mark.gpu
# Another test compiles blocks.
CASES = [case for case in EXACT if "compile" not in case]
ONE_GPU = {"CUDA_VISIBLE_DEVICES": "0"}
GPT = ("--model", "gpt-mini", "--batch-size", "8", "--steps", "4", "--no-accuracy")
MIB = 2**20


def test_every_strategy_equals_one_process_over_nccl() -> None:
    words = ("-m", "tests.trainer.strategy_differences", "--nccl", *CASES)
    code, out, err = finish(start(words))
    assert code == 0, err[-3000:]
    found = {case: far for line in out.splitlines() for case, far in json.loads(line).items()}
    assert found.keys() == set(CASES)
    assert {case: far for case, far in found.items() if max(far) > TOLERANCE} == {}


@pytest.mark.parametrize(
    "options",
    [
        ("--model", "resnet50", "--precision", "bf16"),
        ("--model", "gpt-mini", "--precision", "bf16", "--compile", "block"),
        ("--model", "gpt-mini", "--precision", "fp16", "--checkpointing", "selective"),
        ("--model", "gpt-mini", "--strategy", "dp"),
    ],
    ids=lambda options: options[-1],
)
def test_one_gpu_trains_every_kind_of_model(options: tuple[str, ...]) -> None:
    work = ("--batch-size", "8", "--steps", "3", "--no-accuracy", "--device", "cuda")
    code, out, err = finish(start(trainer(*work, *options), **ONE_GPU))
    assert code == 0, err[-3000:]
    (begun,), steps = events(out, "start"), events(out, "step")
    assert begun["device"] == "cuda"
    assert [math.isfinite(step["loss"]) for step in steps] == [True] * 3


def test_the_memory_of_a_gpu_by_kind() -> None:
    words = (*GPT, "--strategy", "single", "--optimizer", "adamw", "--device", "cuda")
    code, out, err = finish(start(trainer(*words), **ONE_GPU))
    assert code == 0, err[-3000:]
    (memory,) = events(out, "memory")
    states = 4 * 4 * gpt_parameters(GPT_SHAPES["gpt-mini"]) / 2**30
    assert memory["state_memory"] == pytest.approx(states, rel=0.01)
    assert memory["memory"] > memory["state_memory"]


def test_two_ranks_share_a_gpu_and_their_collectives_are_right() -> None:
    place = {**meeting_point(), **ONE_GPU, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2}
    command = ("-m", "hpc_train.trainer.collectives", "all_reduce", "--largest", str(MIB))
    ranks = [
        start(command, **place, RANK=rank, LOCAL_RANK=rank, NCCL_HOSTID=f"host{rank}")
        for rank in (0, 1)
    ]
    results = [finish(rank) for rank in ranks]
    assert [code for code, _, _ in results] == [0, 0], results
    rows = [line.split() for line in results[0][1].splitlines() if line and line[0] == " "]
    assert rows and all(row[8] == row[12] == "0" for row in rows), results[0][1]
