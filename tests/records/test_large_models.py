"""nanotron, Composer, OLMo, fms-fsdp and LitGPT; and what all parsers of text endure."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from hpc_train.records.line import Line
from hpc_train.records.parse_stats import ParseStats
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.run_parsers import maker
from tests.records.parse_text import brief, parse, values

LOGS = Path(__file__).parents[1] / "logs"
NANOTRON = (
    b"[default0]:01/01/2025 10:00:00 [INFO|DP=0|PP=0|TP=0|node1]: iteration: 3 / 100 | "
    b"consumed_tokens: 3.15M | elapsed_time_per_iteration_ms: 1.25K | tokens_per_sec: 840K | "
    b"tokens_per_sec_per_gpu: 105K | global_batch_size: 1.02K | lm_loss: 10.5 | lr: 3e-05 | "
    b"model_tflops_per_gpu: 310 | hardware_tflops_per_gpu: 320 | grad_norm: 2.2"
)
PARSERS = (
    "composer",
    "deepspeed",
    "deepspeed_flops",
    "fms_fsdp",
    "litgpt",
    "megatron",
    "modded_nanogpt",
    "nanotron",
    "olmo",
    "torchtitan",
)


def hits_of(name: str, text: bytes) -> list[Hit]:
    """Read every line, without a search for the literals: compiling them takes the most time."""
    parser = maker(name)()
    return [
        hit for raw in text.split(b"\n") for hit in parser.read(Line(raw)) if isinstance(hit, Hit)
    ]


def test_nanotron() -> None:
    assert brief(NANOTRON) == [
        ("step_time", 1.25, "global", 3, None),
        ("tokens_per_second", 840e3, "global", 3, None),
        ("tokens_per_second", 105e3, "per_gpu", 3, None),
        ("global_batch_size", 1020, "global", 3, None),
        ("loss", 10.5, "global", 3, None),
        ("learning_rate", 3e-5, "global", 3, None),
        ("tflops", 310, "per_gpu", 3, None),
    ]


def test_memory_of_nanotron() -> None:
    text = (
        b"01/01/2025 10:00:00 [INFO|DP=0|PP=0|TP=0]:  Memory usage: 64.25MiB. "
        b"Peak allocated 310.00MiB. Peak reserved: 512.00MiB\n"
        + NANOTRON
        + b" | cuda_memory_allocated: 67.4M | cuda_max_memory_reserved: 8.59G | "
        b"hd_total_memory_tb: 2.13T\n"
    )
    assert values(text, "memory") == [0.5, pytest.approx(8.0, rel=1e-3)]
    # The bar behind it says that the number is whole.
    assert values(text, "grad_norm") == [2.2]


def test_memory_of_others_is_no_damaged_line_of_nanotron() -> None:
    census = ParseStats()
    assert not parse(b"Done. Peak reserved: 12 GB of 80 GB\n", "nanotron", census=census)
    assert not census.damaged


def test_composer() -> None:
    text = (LOGS / "composer/two_batches.txt").read_bytes()
    assert brief(text) == [
        ("memory", pytest.approx(10.0, rel=1e-4), "per_rank", 1, None),
        ("loss", 11.5, "global", 1, None),
        ("learning_rate", 0.0, "global", 1, None),
        ("loss", 9.25, "global", 10, None),
        ("samples_per_second", 64, "global", 10, None),
        ("samples_per_second", 8, "per_gpu", 10, None),
        ("tokens_per_second", 131072, "global", 10, None),
        ("tokens_per_second", 16384, "per_gpu", 10, None),
        ("tflops", 200, "per_gpu", 10, None),
        ("mfu", 0.641, "per_gpu", 10, None),
        ("learning_rate", 1.2e-5, "global", 10, None),
    ]


@pytest.mark.parametrize(
    ("head", "step"),
    [
        ("[epoch=2][batch=3/50]:", 53),
        ("[epoch=2][batch=3]:", None),
        ("[token=4096/1000000]:", None),
        ("[token=4096/1000000]:\n\t Train time/batch: 6", 7),
    ],
)
def test_batch_of_composer(head: str, step: int | None) -> None:
    text = f"[batch=1/9]:\n{head}\n\t Train loss/train/total: 2.5000\n"
    assert brief(text.encode()) == [("loss", 2.5, "global", step, None)]


def test_olmo_core() -> None:
    found = [
        (hit.metric, hit.value, hit.step, hit.variant)
        for _, hit, _ in parse((LOGS / "olmo/core.txt").read_bytes())
    ]
    assert found == [
        ("grad_norm", 5.25, 1, ""),
        ("loss", 11.25, 1, ""),
        ("tokens_per_second", 9500, 1, ""),
        ("tokens_per_second", 9250, 1, "actual_average"),
        ("mfu", pytest.approx(0.415), 1, ""),
        ("memory", 40.25, 1, ""),
        ("learning_rate", 2e-6, 1, ""),
        ("loss", 10.75, 3, ""),
        ("tokens_per_second", 12000, 3, ""),
    ]


@pytest.mark.parametrize(("flops", "expected"), [("412.5T", 412.5), ("1.25P", 1250.0)])
def test_flops_of_olmo_core(flops: str, expected: float) -> None:
    text = (
        "2026-01-01 10:00:00.000 node1:0 olmo_core.train.callbacks.console_logger:104 INFO "
        "[step=50/1000,epoch=1,eta=1h]\n"
        f"    throughput/device/flopsPS={flops}\n"
        "    throughput/device/flopsPS (actual avg)=300.5T\n"
        "    throughput/total flops=89.56P\n"
    )
    found = [
        (hit.metric, round(hit.value, 6), hit.scope, hit.variant)
        for _, hit, _ in parse(text.encode())
    ]
    assert found == [
        ("tflops", expected, "per_gpu", ""),
        ("tflops", 300.5, "per_gpu", "actual_average"),
    ]


def test_olmo() -> None:
    assert brief((LOGS / "olmo/olmo.txt").read_bytes()) == [
        ("grad_norm", 1.5, "global", 5, None),
        ("loss", 7.5, "global", 5, None),
        ("tokens_per_second", 8192, "per_gpu", 5, None),
        # 20,480 MB of 1e6 B
        ("memory", pytest.approx(19.0735, rel=1e-5), "per_rank", 5, None),
        ("learning_rate", 0.0001, "global", 5, None),
    ]


@pytest.mark.parametrize(
    ("line", "seconds", "step", "variant"),
    [
        (b"iter 5: loss 2.5000, time: 250.00ms, speed: 8192 toks/s/device", 0.25, 5, ""),
        (b"iter 5: loss 2.5000, time: 250.00ms, speed: - toks/s/device", 0.25, 5, "micro_batch"),
        (b"iter 5: loss 2.5000, time: 250.00ms", 0.25, 5, ""),
        (b"iter 31 step 1: loss 1.9, iter time: 250.00ms (optimizer.step)", 0.25, 1, "micro_batch"),
        (
            b"iter 10 step 11: loss 6.6, LR: 0.0001, iter time: 250.00ms (optimizer.step)",
            0.25,
            11,
            "",
        ),
        (
            b"Epoch 1 | iter 7 step 7 | loss train: 2.500, val: n/a | iter time: 250.00 ms (step)",
            0.25,
            7,
            "",
        ),
        (
            b"iter 1770 | step 221: loss 1.52, iter time: 250.00 ms (optimizer.step)",
            0.25,
            221,
            "micro_batch",
        ),
        (
            b"iter 810 | step 101: loss train 0.27, val 1.7 | iter time: 0.25 s",
            0.25,
            101,
            "micro_batch",
        ),
        (
            b"iter 20/4000 step 5/1000: loss 9.1, iter time: 250.00ms (optimizer.step) remaining "
            b"time: 12.30 hours.  or 0.51 days. ",
            0.25,
            5,
            "micro_batch",
        ),
        (b"Epoch 1 | iter 7 | loss train: 35.25, val: n/a | iter time: 177.5 s", 177.5, 7, ""),
    ],
)
def test_litgpt(line: bytes, seconds: float, step: int, variant: str) -> None:
    times: list[object] = [
        (hit.value, hit.step, hit.variant) for _, hit, _ in parse(line) if hit.metric == "step_time"
    ]
    assert times == [(pytest.approx(seconds), step, variant)]
    assert len(values(line, "loss")) == 1


@pytest.mark.parametrize("name", PARSERS)
def test_parser_of_another_line_says_nothing(name: str) -> None:
    line = b"the quick brown fox | jumps: over | the lazy dog | 1.0 |\n"
    assert not parse(b"".join(literal + line for literal in maker(name)().literals), name)


@pytest.mark.parametrize("name", ["megatron", "torchtitan", "deepspeed", "composer"])
def test_cut_line_states_nothing_that_the_whole_one_does_not(name: str) -> None:
    sample = maker(name)().sample.encode()
    # Whole numbers at the end of a line cannot be told from cut ones.
    start = sample.index(b"\n") + 1 if name == "megatron" else 0
    whole = [(hit.metric, hit.value) for hit in hits_of(name, sample)]
    for length in range(start, len(sample)):
        cut = [(hit.metric, hit.value) for hit in hits_of(name, sample[:length])]
        assert cut == whole[: len(cut)], sample[:length]


@pytest.mark.parametrize("name", PARSERS)
def test_damaged_lines_never_raise(name: str) -> None:
    sample = maker(name)().sample.encode()
    noise = [b"1e999", b"9" * 400, b"nan", b"-inf", b"\x00", b"\xff", b"\x1b[31m", b"|", b"\n"]
    random.seed(name)
    for _ in range(300):
        at, to = sorted(random.choices(range(len(sample)), k=2))  # noqa: S311 - no secret
        text = sample[:at] + random.choice(noise) + sample[to:]  # noqa: S311 - no secret
        for hit in hits_of(name, text + sample[:at]):
            assert math.isfinite(hit.value)
            assert hit.step is None or 0 <= hit.step < 10**15
            assert hit.steps >= 1
