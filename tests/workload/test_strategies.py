"""Every strategy equals one process: loss, gradients and parameters, in fp64 on real ranks."""

from __future__ import annotations

import json

import pytest

from tests.workload.launching import finish, start

pytest.importorskip("torch")
pytestmark = pytest.mark.slow
TOLERANCE = 1e-10
CASES = (
    "2 ddp cnn sgd",
    "2 ddp gpt-test adamw accumulate=2",
    "2 zero1 cnn sgd",
    "2 zero1 gpt-test adamw accumulate=2",
    "2 fsdp cnn sgd",
    "2 fsdp gpt-test adamw accumulate=4",
    "2 tensor gpt-test sgd accumulate=2",
    "2 tensor gpt-test adamw",
    "2 context gpt-test sgd",
    "2 context gpt-test adamw accumulate=2",
    "2 naive cnn sgd",
    "2 naive gpt-test adamw",
    "2 pipeline cnn adamw",
    "2 pipeline gpt-test sgd schedule=GPipe",
    "2 pipeline gpt-test adamw accumulate=8",
    "2 pipeline gpt-test sgd schedule=LoopedBFS",
    "2 pipeline gpt-test sgd schedule=Interleaved1F1B",
    "2 pipeline gpt-test sgd schedule=InterleavedZeroBubble",
    "2 pipeline gpt-test sgd schedule=ZBVZeroBubble",
    "2 pipeline gpt-test sgd schedule=DualPipeV",
    "4 ddp gpt-test sgd",
    "4 zero1 gpt-test adamw",
    "4 fsdp cnn adamw",
    "4 hsdp cnn sgd",
    "4 hsdp gpt-test adamw accumulate=2",
    "4 tensor gpt-test adamw",
    "4 context gpt-test adamw",
    "4 naive cnn adamw",
    "4 pipeline gpt-test adamw",
    "4 fsdp+tensor gpt-test sgd",
    "4 fsdp+tensor gpt-test adamw accumulate=2",
    "4 pipeline+ddp cnn sgd",
    "4 pipeline+ddp gpt-test adamw",
    "4 pipeline+fsdp gpt-test sgd",
    "4 pipeline+fsdp gpt-test adamw",
)


def test_every_strategy_equals_one_process() -> None:
    code, out, err = finish(start(("-m", "tests.workload.strategy_differences", *CASES)))
    assert code == 0, err[-3000:]
    found = {case: far for line in out.splitlines() for case, far in json.loads(line).items()}
    assert found.keys() == set(CASES)
    assert {case: far for case, far in found.items() if max(far) > TOLERANCE} == {}
