"""Situations with a known answer: what is recommended, and the reason that must be given."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import pytest
from msgspec.structs import replace

from hpc_train.advice.question import Question
from hpc_train.advice.verdicts import advise
from hpc_train.model.program_size import ProgramSize
from tests.advice.questions import A100, CPUS, V100, ask, gpt, other, row_of, step
from tests.cases import cases

SLOW_NETWORK = replace(A100, node_link=1.25)
A100_80 = replace(A100, gpus_per_node=8, ranks_per_node=8, least_gib=80, most_gib=80, node_link=200)
H100 = replace(A100_80, gpu="H100", least_gib=64, most_gib=96, gpu_link=450.0, node_link=400.0)


class Situation(NamedTuple):
    """A question, and words of the three lines, of the refusals or of what is missing."""

    question: Question
    one_rank: str = ""
    recommended: str = ""
    limit: str = ""
    refused: str = ""
    missing: str = ""


SITUATIONS = {
    "a small model needs one GPU": Situation(
        ask(gpt(global_batch=8)), "One GPU suffices", "single on 1 GPU."
    ),
    "a large batch needs micro-batches, not GPUs": Situation(
        ask(gpt(global_batch=512)), "with micro-batches of 32", "single on 1 GPU, with micro-batch"
    ),
    "states larger than a GPU need fsdp": Situation(
        ask(gpt("gpt-1.5b", global_batch=8), V100), "does not suffice", "fsdp on 4 GPUs, certainly"
    ),
    "one sample cannot be divided": Situation(
        ask(gpt("gpt-1.5b", global_batch=1), V100), "does not suffice", "No strategy fits",
        refused="fsdp cannot divide 1 sample among",
    ),
    "seven billion parameters fit nowhere but in shards": Situation(
        ask(other(7e9), A100, 1, 4, 8, 16), "does not suffice",
        "No strategy certainly fits. First to try: fsdp on 4 GPUs, which needs at least 27.1 GiB, "
        "assuming fp32 parameters with adamw; its activations are unknown. Count them: --program",
    ),
    "a deadline needs more GPUs": Situation(
        ask(gpt(global_batch=64, steps=1000), measured=(step(3.6),), deadline_s=1300),
        "One GPU suffices", "ddp on 4 GPUs",
    ),
    "a deadline that cannot be met has the best time": Situation(
        ask(gpt(steps=1000), measured=(step(3.6),), deadline_s=60),
        recommended="No size up to 16 GPUs can meet the deadline of 60.0 s: it takes at least 3.75",
    ),
    "a deadline that cannot be met says how many GPUs it needs": Situation(
        ask(gpt(steps=1000), measured=(step(3.6),), deadline_s=60),
        recommended="The deadline needs at least 60 GPUs: --gpus 60.",
    ),
    "a deadline that may be met has the best certain time": Situation(
        ask(gpt(steps=1000), measured=(step(3.6),), deadline_s=230),
        recommended="No size is certain to meet the deadline of 3.83 min: the best take at most",
    ),
    "a deadline by the peak alone cannot be met either": Situation(
        ask(gpt(steps=1000), deadline_s=10),
        recommended="No size up to 16 GPUs can meet the deadline of 10.0 s: it takes at least",
    ),
    "neither time nor budget are enough": Situation(
        ask(gpt(steps=1000), measured=(step(3.6),), deadline_s=60, budget_gpu_hours=0.5),
        recommended="can meet the deadline of 60.0 s and the budget of 30.0 GPU-min: it takes",
    ),
    "a budget is met by fewer GPUs": Situation(
        ask(gpt(steps=1000), measured=(step(3.6),), budget_gpu_hours=1.05),
        recommended="single on 1 GPU",
    ),
    "a deadline without a measurement cannot be promised": Situation(
        ask(gpt(steps=1000), deadline_s=1e6),
        recommended="without a measured step no time has an upper bound. Measure one",
        limit="unknown: no step is measured", missing="a measured step",
    ),
    "a slow network ends at the node": Situation(
        ask(gpt(), SLOW_NETWORK, measured=(step(0.4),)),
        limit="Beyond 4 GPUs the efficiency may be below 75 %",
    ),
    "a fast network goes on": Situation(
        ask(gpt(global_batch=512), measured=(step(3.2, batch=512),)),
        limit="up to 16 GPUs, the largest"
    ),
    "data first": Situation(
        ask(gpt(), measured=(step(0.9, data_share=0.6),)), "waits for data for 60 %",
    ),
    "fp32 on one GPU first": Situation(
        ask(gpt(precision="fp32"), measured=(step(18.0),)), "bf16 instead of fp32, or TF32: torch",
    ),
    "a busy GPU is left alone": Situation(
        ask(gpt(), measured=(step(0.4),)), "reaches 45 % of the peak (MFU).",
    ),
    "more ranks than samples": Situation(
        ask(gpt(global_batch=8), A100, 1, 16), refused="ddp cannot divide 8 samples among 16 ranks"
    ),
    "hsdp within one node": Situation(
        ask(gpt(), A100, 1, 2), refused="hsdp shards within a node and copies between nodes"
    ),
    "tensor beyond a node": Situation(
        ask(gpt(), A100, 8), refused="tensor communicates in each layer: it stays within one node"
    ),
    "no parameters": Situation(
        ask(other(None)), "suffices for the memory is unknown",
        "No recommendation: without the number of parameters",
        missing="the number of parameters",
    ),
    "no batch": Situation(
        ask(other(global_batch=None)), "may suffice: the batch is unknown",
        "single on 1 GPU, which needs at least 15.3 GiB, assuming fp32 parameters with "
        "adamw; the batch is unknown: --condition global",
        missing="the batch: --condition global_batch=512",
    ),
    "no memory of the GPU": Situation(
        ask(gpt(), replace(A100, least_gib=None, most_gib=None)),
        "suffices for the memory is unknown",
        "as the memory of the GPU is unknown: single on 1 GPU needs 44.8 to 61.5 GiB.",
        missing="the memory of the GPU",
    ),
    "no speed of the network": Situation(
        ask(gpt(), replace(A100, node_link=None), measured=(step(0.5),)),
        missing="nics_per_node and nic_gbps",
        limit="Worth it up to 4 GPUs; beyond, the time has no upper bound.",
    ),
    "processors": Situation(
        ask(gpt("gpt-tiny", precision="fp32"), CPUS, 1, 2),
        recommended="as the memory of the node is unknown: single on 1 rank needs 0.",
    ),
    "what was measured here fits": Situation(
        ask(gpt("gpt-tiny", precision="fp32"), CPUS, 1, 2, measured=(step(0.5, here=True),)),
        "One rank suffices", "Recommended: single on 1 rank.",
    ),
    "seven billion parameters without a batch do not fit either": Situation(
        ask(other(7e9, global_batch=None), A100, 1, 2), "does not suffice", "No strategy fits",
        missing="the activations of a sample: --program",
    ),
    "one sample for each GPU fits, but is no recommendation": Situation(
        ask(gpt("gpt-1.5b", global_batch=4), V100, 1, 4), "does not suffice",
        "No size is recommended: fsdp on 4 GPUs fits, but is not advised (1 sample for each rank",
    ),
    "one sample for each GPU, of a size that is not known": Situation(
        ask(other(None, global_batch=4), V100, 4),
        recommended="No size is recommended: ddp on 4 GPUs is not advised (1 sample for each rank",
    ),
    "of what may fit, the least memory is tried first": Situation(
        ask(other(7e9), replace(A100, most_gib=80), 1, 2),
        recommended="First to try: fsdp on 2 GPUs, which needs at least 53.2 GiB, assuming",
    ),
    "a GPU at a quarter of its peak is left alone": Situation(
        ask(gpt(), measured=(step(0.72),)), "reaches 25 % of the peak (MFU).",
    ),
    "data first, for a quarter of a step": Situation(
        ask(gpt(), measured=(step(0.9, data_share=0.25),)), "waits for data for 25 %",
    ),
    "a deadline that only an inefficient size meets": Situation(
        ask(
            gpt(steps=1000), A100, 1, 4, 8, deadline_s=350,
            measured=(step(0.4), step(0.3, 4), step(0.29, 8)),
        ),
        recommended="No size is recommended: ddp on 4 GPUs fits, but is not worth it (efficiency",
    ),
    "a deadline beyond any machine": Situation(
        ask(gpt(steps=10**12), replace(A100, max_nodes=4), measured=(step(3.6),), deadline_s=60),
        recommended="at least 60,000,000,000 GPUs; 16 are the most of one job.",
    ),
    "a program of one's own is taken to be fp32": Situation(
        ask(other()),
        missing="the precision, taken as fp32; if it is another: --condition precision=bf16",
    ),
    "without operations there is no lower bound": Situation(
        ask(other()), missing="the operations of a sample: --program MODULE:FUNCTION, or",
    ),
    "a measured step of an unknown batch": Situation(
        ask(gpt(), measured=(step(3.6, batch=None),)), limit="unknown: the batch of a step",
        missing="the batch of the measured steps",
    ),
    "a batch of each rank has no time to the end": Situation(
        ask(gpt(global_batch=None, batch=8, steps=1000), measured=(step(0.5, batch=8),)),
        missing="the time to the end, which needs one batch for all sizes",
    ),
    "more micro-batches than samples": Situation(
        ask(gpt(accumulate=128)), "One GPU cannot train it so: single divides 64 samples into 128"
    ),
    "a budget that is too small": Situation(
        ask(gpt(steps=1000), measured=(step(3.6),), budget_gpu_hours=0.5),
        recommended="it takes at least 3.75 min, and 1.00 GPU-h.",
    ),
    "a baseline of eight GPUs": Situation(
        ask(gpt(global_batch=512), measured=(step(0.5, 8, 512),)),
        limit="up to 16 GPUs, the largest"
    ),
}  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS.keys())
def test_the_answer_is_right_and_says_why(situation: Situation) -> None:
    advice = advise(situation.question)
    assert situation.one_rank in advice.one_rank
    assert situation.recommended in advice.recommended
    assert situation.limit in advice.limit
    assert situation.refused in "; ".join(reason for _, reason in advice.refused)
    assert situation.missing in "; ".join(advice.missing)


@pytest.mark.parametrize(
    ("known", "asked", "steps", "words"),
    cases("advice/assumptions.yaml", "what_the_answer_assumes"),
)
def test_the_answer_names_what_it_assumes(
    known: dict[str, Any], asked: dict[str, Any], steps: list[dict[str, Any]], words: list[str]
) -> None:
    stated = dict.fromkeys(known, "stated")
    program = msgspec.convert(known | {"name": "own", "sources": stated}, ProgramSize, strict=False)
    question = ask(program, H100 if asked.pop("h100", False) else A100_80, 1, 2, 4, 8, 16)
    measured = tuple(step(one.pop("seconds"), **one) for one in steps)
    advice = advise(replace(question, measured=measured, **asked))
    said = [advice.one_rank, advice.recommended, advice.limit, *advice.missing]
    for row in advice.rows:
        where, end = f"{row.strategy} on {row.ranks}", row.step.high or 0.0
        said.append(f"{where}: {row.verdict}: {row.reason}{row.assuming}")
        said.append(f"{where}: {row.step.low:.3g} to {end:.3g} s")
        said += [f"{where}: {row.memory.whole.low / 2**30:.0f} GiB"] if row.memory else []
    assert [one for one in words if one not in "\n".join(said)] == []


@pytest.mark.parametrize(
    ("question", "strategy", "ranks", "verdict", "reason"),
    [
        (ask(gpt(global_batch=8)), "fsdp", 4, "not needed", "ddp fits"),
        (ask(gpt("gpt-1.5b", global_batch=8), V100), "ddp", 2, "does not fit", "even with one"),
        (ask(gpt(global_batch=16)), "ddp", 16, "not advised", "1 sample for each rank"),
        (
            ask(gpt(), SLOW_NETWORK, measured=(step(0.1),)),
            "ddp", 16, "not worth it", "even if all traffic is hidden",
        ),
        (
            ask(gpt(steps=1000), measured=(step(3.6),), deadline_s=1300),
            "ddp", 2, "too late", "the deadline is 21.7 min",
        ),
        (
            ask(gpt(steps=1000), measured=(step(3.6),), budget_gpu_hours=0.9),
            "ddp", 8, "too expensive", "the budget is 54.0 GPU-min",
        ),
    ],
)  # fmt: skip
def test_a_row_has_its_reason(
    question: Question, strategy: str, ranks: int, verdict: str, reason: str
) -> None:
    row = row_of(advise(question), strategy, ranks)
    assert row.verdict == verdict
    assert reason in row.reason
