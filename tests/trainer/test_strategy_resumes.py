"""A checkpoint of every strategy resumes under the same one bit for bit, and under others in fp64.

What is loaded equals what was saved bit for bit in each pair; only the order of the sums of the
later steps differs.
"""

import json
from itertools import pairwise

import pytest

from tests.trainer.launching import finish, start

pytest.importorskip("torch")
TOLERANCE = 1e-10
GPT = "gpt-test adamw"
# Each is resumed by itself and by the next one.
RINGS = (
    [f"2 {name} {GPT} clip_norm=0.1" for name in ("ddp", "zero1", "fsdp", "tensor", "context")]
    + [f"2 {name} {GPT} clip_norm=0.1" for name in ("pipeline", "naive", "ddp")],
    [
        f"4 {name} {GPT}"
        for name in ("hsdp", "pipeline+fsdp", "fsdp+tensor", "pipeline+ddp", "hsdp")
    ],
    [f"2 {name} cnn sgd" for name in ("zero1", "pipeline", "zero1")],
)
OTHERS = (
    f"2 pipeline {GPT} schedule=DualPipeV > 2 pipeline {GPT} schedule=Interleaved1F1B",
    f"2 fsdp {GPT} checkpointing=full > 2 tensor {GPT}",
    f"4 fsdp+tensor {GPT} > 2 zero1 {GPT}",
    f"2 zero1 {GPT} > 4 zero1 {GPT}",
    f"4 pipeline+fsdp {GPT} > 1 single {GPT}",
    f"1 single {GPT} > 4 pipeline+ddp {GPT}",
)
SAME = [f"{case} > {case}" for ring in RINGS for case in ring[1:]]
PAIRS = [*SAME, *(f"{a} > {b}" for ring in RINGS for a, b in pairwise(ring)), *OTHERS]


FEW = (
    f"2 ddp {GPT} > 2 zero1 {GPT}",
    f"2 zero1 {GPT} > 2 fsdp {GPT}",
    f"2 fsdp {GPT} > 2 pipeline {GPT}",
    f"2 pipeline {GPT} > 2 pipeline {GPT}",
    f"2 pipeline {GPT} > 1 single {GPT}",
    f"2 tensor {GPT} > 2 tensor {GPT}",
    f"4 fsdp+tensor {GPT} > 2 ddp {GPT}",
)


@pytest.mark.parametrize(
    "pairs", [FEW, pytest.param(PAIRS, marks=pytest.mark.long)], ids=["few", "all"]
)
def test_every_strategy_resumes_its_checkpoints_and_those_of_others(pairs: list[str]) -> None:
    code, out, err = finish(start(("-m", "tests.trainer.strategy_resumes", *pairs)))
    assert code == 0, err[-3000:]
    found = {pair: far for line in out.splitlines() for pair, far in json.loads(line).items()}
    assert found.keys() == set(pairs)
    same = [pair for pair in pairs if len({*pair.split(" > ")}) == 1]
    assert {pair: found[pair] for pair in pairs if found[pair][0]} == {}
    assert {pair: found[pair] for pair in same if found[pair][1]} == {}
    assert {pair: found[pair] for pair in pairs if found[pair][1] > TOLERANCE} == {}
