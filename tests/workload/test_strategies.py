"""Every strategy equals one process: loss, gradients and parameters, in fp64 on real ranks."""

from __future__ import annotations

import json

import pytest

from tests.workload.launching import finish, meeting_point, start

pytest.importorskip("torch")
pytestmark = pytest.mark.slow
TOLERANCE = 1e-10
TWO = (
    "ddp:cnn:sgd",
    "ddp:gpt-tiny:adamw:1F1B:2",
    "zero1:cnn:sgd",
    "zero1:gpt-tiny:adamw:1F1B:2",
    "fsdp:cnn:sgd",
    "fsdp:gpt-tiny:adamw:1F1B:4",
    "tensor:gpt-tiny:sgd:1F1B:2",
    "tensor:gpt-tiny:adamw",
    "context:gpt-tiny:sgd",
    "context:gpt-tiny:adamw:1F1B:2",
    "naive:cnn:sgd",
    "naive:gpt-tiny:adamw",
    "pipeline:cnn:adamw:1F1B",
    "pipeline:gpt-tiny:sgd:GPipe",
    "pipeline:gpt-tiny:adamw:1F1B:8",
    "pipeline:gpt-tiny:sgd:LoopedBFS",
    "pipeline:gpt-tiny:sgd:Interleaved1F1B",
    "pipeline:gpt-tiny:sgd:InterleavedZeroBubble",
    "pipeline:gpt-tiny:sgd:ZBVZeroBubble",
    "pipeline:gpt-tiny:sgd:DualPipeV",
)
FOUR = (
    "ddp:gpt-tiny:sgd",
    "zero1:gpt-tiny:adamw",
    "fsdp:cnn:adamw",
    "hsdp:cnn:sgd",
    "hsdp:gpt-tiny:adamw:1F1B:2",
    "tensor:gpt-tiny:adamw",
    "context:gpt-tiny:adamw",
    "naive:cnn:adamw",
    "pipeline:gpt-tiny:adamw:1F1B",
    "fsdp+tensor:gpt-tiny:sgd",
    "fsdp+tensor:gpt-tiny:adamw:1F1B:2",
    "pipeline+ddp:cnn:sgd",
    "pipeline+ddp:gpt-tiny:adamw",
    "pipeline+fsdp:gpt-tiny:sgd",
    "pipeline+fsdp:gpt-tiny:adamw",
)


@pytest.mark.parametrize("cases", [TWO, FOUR], ids=["2", "4"])
def test_every_strategy_equals_one_process(cases: tuple[str, ...]) -> None:
    size = 2 if cases == TWO else 4
    command = ("-m", "tests.workload.strategy_differences", *cases)
    common = {**meeting_point(), "WORLD_SIZE": size}
    ranks = [start(command, **common, RANK=rank, LOCAL_RANK=rank) for rank in range(size)]
    results = [finish(rank) for rank in ranks]
    assert [code for code, _, _ in results] == [0] * size, results[0][2][-3000:]
    found = json.loads(results[0][1])
    assert found.keys() == set(cases)
    assert {case: far for case, far in found.items() if max(far) > TOLERANCE} == {}
