"""Every strategy equals one process: loss, gradients and parameters, on real ranks.

In fp64 with clipped gradients, checkpointing and compiled blocks; in bf16 and fp16 about so.
"""

import json

import pytest

from hpc_train.jobs.strategies import SCHEDULES
from tests.trainer.launching import finish, start

pytest.importorskip("torch")
TOLERANCE, HALF_TOLERANCE = 1e-10, 1e-2
# Stages of two ranks, alone and in compositions of two by two.
SCHEDULED = tuple(
    f"{ranks} {strategy} gpt-test adamw schedule={schedule} {more} clip_norm=0.1"
    for ranks, strategy in ((2, "pipeline"), (4, "pipeline+ddp"), (4, "pipeline+fsdp"))
    for schedule, kind in SCHEDULES.items()
    for more in ("accumulate=4", "accumulate=8 checkpointing=full", "checkpointing=selective")
    if not (kind.splits_backward and "selective" in more)
)
EXACT = (
    *SCHEDULED,
    "2 ddp cnn sgd clip_norm=0.1",
    "2 ddp gpt-test adamw accumulate=2 warmup_steps=2 checkpointing=full compile=block",
    "2 zero1 cnn sgd",
    "2 zero1 gpt-test adamw accumulate=2 clip_norm=0.1 warmup_steps=2",
    "2 fsdp cnn sgd",
    "2 fsdp gpt-test adamw accumulate=4 clip_norm=0.1 checkpointing=full compile=block",
    "2 tensor gpt-test sgd accumulate=2 clip_norm=0.1 checkpointing=full",
    "2 context gpt-test sgd clip_norm=0.1",
    "2 context gpt-test adamw accumulate=2 checkpointing=selective",
    "2 naive cnn sgd",
    "2 naive resnet50 sgd clip_norm=0.1",
    "2 naive gpt-test adamw clip_norm=0.1 checkpointing=full",
    "2 pipeline cnn adamw clip_norm=0.1",
    "2 pipeline gpt-test adamw accumulate=8 compile=block",
    "2 pipeline gpt-test sgd schedule=InterleavedZeroBubble checkpointing=full",
    "4 ddp gpt-test sgd",
    "4 zero1 gpt-test adamw",
    "4 fsdp cnn adamw",
    "4 hsdp cnn sgd",
    "4 hsdp gpt-test adamw accumulate=2 clip_norm=0.1 checkpointing=selective",
    "4 tensor gpt-test adamw clip_norm=0.1",
    "4 context gpt-test adamw",
    "4 naive cnn adamw",
    "4 pipeline gpt-test adamw clip_norm=0.1",
    "4 fsdp+tensor gpt-test sgd clip_norm=0.1",
    "4 fsdp+tensor gpt-test adamw accumulate=2 checkpointing=full",
    "4 pipeline+ddp cnn sgd",
    "4 pipeline+ddp gpt-test adamw clip_norm=0.1",
    "4 pipeline+fsdp gpt-test sgd",
    "4 pipeline+fsdp gpt-test adamw clip_norm=0.1",
)
# Gradients by autocast, and by the policy of fsdp, differ from those of fp32.
HALF = (
    "2 ddp gpt-test sgd precision=fp16 clip_norm=0.1",
    "2 fsdp gpt-test sgd precision=fp16",
    "2 naive gpt-test sgd precision=bf16",
    "2 tensor gpt-test sgd precision=bf16",
    "2 pipeline gpt-test sgd precision=bf16",
    "4 pipeline+fsdp gpt-test sgd precision=bf16 clip_norm=0.1",
)
# Each strategy once, with most of what it can be combined with.
FEW = (
    *(case for case in SCHEDULED if "+fsdp" in case and "accumulate=4" in case),
    "2 ddp gpt-test adamw accumulate=2 warmup_steps=2 checkpointing=full compile=block",
    "2 zero1 gpt-test adamw accumulate=2 clip_norm=0.1 warmup_steps=2",
    "2 fsdp cnn sgd",
    "2 tensor gpt-test sgd accumulate=2 clip_norm=0.1 checkpointing=full",
    "2 context gpt-test adamw accumulate=2 checkpointing=selective",
    "2 naive gpt-test adamw clip_norm=0.1 checkpointing=full",
    "2 pipeline cnn adamw clip_norm=0.1",
    "2 fsdp gpt-test sgd precision=fp16",
    "4 hsdp gpt-test adamw accumulate=2 clip_norm=0.1 checkpointing=selective",
    "4 fsdp+tensor gpt-test adamw accumulate=2 checkpointing=full",
    "4 pipeline+ddp gpt-test adamw clip_norm=0.1",
    "4 pipeline+fsdp gpt-test sgd precision=bf16 clip_norm=0.1",
)


@pytest.mark.parametrize(
    "chosen",
    [FEW, pytest.param((*EXACT, *HALF), marks=pytest.mark.long)],
    ids=["few", "all"],
)
def test_every_strategy_equals_one_process(chosen: tuple[str, ...]) -> None:
    cases = sorted(chosen, key=lambda case: case[0])
    code, out, err = finish(start(("-m", "tests.trainer.strategy_differences", *cases)))
    assert code == 0, err[-3000:]
    found = {case: far for line in out.splitlines() for case, far in json.loads(line).items()}
    assert found.keys() == set(cases)
    exact, half = set(EXACT) & {*cases}, set(HALF) & {*cases}
    assert len(exact) + len(half) == len(cases)
    assert {case: found[case] for case in exact if max(found[case]) > TOLERANCE} == {}
    assert {case: found[case] for case in half if max(found[case]) > HALF_TOLERANCE} == {}
    assert all(max(found[case]) > TOLERANCE for case in half), "they must differ from fp32"
