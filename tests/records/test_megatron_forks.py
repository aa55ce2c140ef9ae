"""Megatron-DeepSpeed, GPT-NeoX, Megatron Bridge, Primus and first releases."""

from __future__ import annotations

import pytest

from hpc_train.records.parse_stats import ParseStats
from tests.records.parse_text import brief, parse, values


def test_megatron_deepspeed() -> None:
    text = (
        b"7:  iteration        4/   30517 | consumed tokens: 64 | elapsed time per iteration (ms):"
        b" 15000.0 | lm-loss: 1.25E+01 | actual seqlen:  2048 | samples per second: 1.050 |"
        b" tokens per gpu per second (tgs): 537.75 | TFLOPs: 25.55 |"
    )
    assert brief(text, "megatron") == [
        ("step_time", 15.0, "global", 4, 7),
        ("loss", 12.5, "global", 4, 7),
        ("samples_per_second", 1.05, "global", 4, 7),
        ("tokens_per_second", 537.75, "per_gpu", 4, 7),
        ("tflops", 25.55, "per_gpu", 4, 7),
    ]


def test_keys_with_equals_signs() -> None:
    text = (
        b"[2024-01-01 10:00:42][INFO][training:1609] -  iteration=       1/  317892 |"
        b" elapsed_time_per_iteration_ms=108500.0 | global_batch_size=  768 | lm loss=11.125 |"
        b" tokens_per_gpu_per_second_tgs=1203.5 | [LM]TFLOPs=49.5 | [DS]TFLOPs=73.25 |"
    )
    found = [(hit.metric, hit.value, hit.variant) for _, hit, _ in parse(text)]
    assert found == [
        ("step_time", 108.5, ""),
        ("global_batch_size", 768, ""),
        ("loss", 11.125, ""),
        ("tokens_per_second", 1203.5, ""),
        ("tflops", 49.5, ""),
        ("tflops", 73.25, "deepspeed"),
    ]


@pytest.mark.parametrize(
    ("flops", "expected"), [("150.5TFLOPS", 150.5), ("0.5PFLOPS", 500.0), ("3.0EFLOPS", 3e6)]
)
def test_gpt_neox(flops: str, expected: float) -> None:
    text = (
        f" samples/sec: 51.25 | iteration       10/      50 | elapsed time per iteration (ms):"
        f" 9000.0 | learning rate: 1.0E-04 | approx flops per GPU: {flops} | lm_loss: 7.5E+00 |"
        " number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        "validation results at iteration 10 | lm_loss value: 6.5E+00 | lm_loss_ppl value: 6E+02 | "
    )
    assert brief(text.encode(), "megatron") == [
        ("samples_per_second", 51.25, "global", 10, None),
        ("step_time", 9.0, "global", 10, None),
        ("learning_rate", 1e-4, "global", 10, None),
        ("tflops", expected, "per_gpu", 10, None),
        ("loss", 7.5, "global", 10, None),
        ("loss", 6.5, "global", 10, None),
    ]


def test_keys_without_colons() -> None:
    text = (
        b" iteration      100/  320000 | elapsed time per iteration (ms): 530.5 | learning rate"
        b" 1.500E-04 | lm loss 9.25E+00 | loss scale 65536.0 |\n"
        b" iteration      200/  320000 | elapsed time per iteration (ms): 530.5 | learning rate"
        b" 1.500E-04 | total loss 8.5E+00 | loss 8.25E+00 | loss scale 65536.0 |"
        b"speed 90.00 samples/(min*GPU)\n"
        b" validation loss at iteration 200 | loss: 7.5E+00 | PPL: 1.8E+03 |\n"
    )
    assert brief(text, "megatron") == [
        ("step_time", 0.5305, "global", 100, None),
        ("learning_rate", 1.5e-4, "global", 100, None),
        ("loss", 9.25, "global", 100, None),
        ("step_time", 0.5305, "global", 200, None),
        ("learning_rate", 1.5e-4, "global", 200, None),
        ("loss", 8.25, "global", 200, None),
        ("samples_per_second", 1.5, "per_gpu", 200, None),
        ("loss", 7.5, "global", 200, None),
    ]


@pytest.mark.parametrize(
    ("key", "metric", "scope"),
    [
        ("tokens/sec/gpu", "tokens_per_second", "per_gpu"),
        ("tokens/s/gpu", "tokens_per_second", "per_gpu"),
        ("tokens-per-second-per-gpu", "tokens_per_second", "per_gpu"),
        ("tokens per second per device", "tokens_per_second", "per_gpu"),
        ("throughput (token/sec/GPU)", "tokens_per_second", "per_gpu"),
        ("tokens per sec", "tokens_per_second", "global"),
        ("samples per sec", "samples_per_second", "global"),
        ("memory(GiB)", "memory", "per_rank"),
    ],
)
def test_rates_of_forks(key: str, metric: str, scope: str) -> None:
    text = f" [2025-01-01 10:00:00] iteration 5/ 9 | {key}: 64.5 | TFLOPs: 150.25 |"
    found = brief(f"{text} elapsed time per iteration (ms): 10.5 |".encode(), "megatron")
    assert found[0] == (metric, 64.5, scope, 5, None)


def test_memory_of_the_first_releases() -> None:
    text = (
        b"3: after 100 iterations memory (MB) | allocated: 512.5 | max allocated: 1024.0 |"
        b" cached: 1536.0 | max cached: 2048.0\n"
    )
    found = [(hit.value, hit.variant, hit.step, who) for _, hit, who in parse(text, "megatron")]
    assert found == [(1.0, "max_allocated", 100, 3), (2.0, "max_reserved", 100, 3)]


def test_timers_with_names_of_words() -> None:
    text = b"time (ms) | model and optimizer: 250.50 | batch generator: 5.25 | cut by: 1.2"
    found: list[object] = [(hit.variant, hit.value) for _, hit, _ in parse(text, "megatron")]
    assert found == [
        ("model and optimizer", pytest.approx(0.2505)),
        ("batch generator", pytest.approx(0.00525)),
    ]


@pytest.mark.parametrize("cut", [b"lm loss 9.2", b"lm loss 9.25E+0", b"lm loss: 9.25"])
def test_last_number_without_a_bar(cut: bytes) -> None:
    census = ParseStats()
    text = b" iteration 5/ 9 | elapsed time per iteration (ms): 530.5 | " + cut
    assert values(text, "loss") == []
    parse(text, "megatron", census=census)
    assert census.damaged


@pytest.mark.parametrize("unit", ["MODEL_TFLOP/s/GPU", " TFLOP/s/GPU"])
def test_megatron_bridge(unit: str) -> None:
    text = (
        f"job_a/0 Step Time : 9.25s GPU utilization: 650.5{unit}\n"
        "job_a/0  [2026-01-01 10:00:00] iteration       10/      50 | consumed samples: 5120 |"
        " elapsed time per iteration (ms): 9250.0 | global batch size:   512 |\n"
        # The work of some models is not counted.
        f"job_a/0 Step Time : 9.25s GPU utilization: 0.0{unit}\n"
    )
    assert brief(text.encode(), "megatron") == [
        ("tflops", 650.5, "per_gpu", None, None),
        ("step_time", 9.25, "global", 10, None),
        ("global_batch_size", 512, "global", 10, None),
    ]
    every = b"  log_interval .................................... 10\n"
    (rate,) = (hit for _, hit, _ in parse(every + text.encode()) if hit.metric == "tflops")
    assert rate.steps == 10


@pytest.mark.parametrize(
    ("rates", "tflops", "tokens"),
    [
        (
            "throughput per GPU (TFLOP/s/GPU): 210.5/217.3 |"
            " tokens per GPU (tokens/s/GPU): 12130.5/12525.5",
            210.5,
            12130.5,
        ),
        (
            "compute per GPU (TFLOP/s/GPU): 615.5 (avg 616.0) |"
            " tokens/s/GPU inst/harmonic mean: 11941.75/11942.0",
            615.5,
            11941.75,
        ),
    ],
)
def test_primus_pairs(rates: str, tflops: float, tokens: float) -> None:
    text = (
        "[20250101 10:00:00][rank-31/32][INFO ] [--------trainer.py:2488] :  iteration    125/ 360"
        " | elapsed time per iteration (ms): 2700.0/2712.7 | hip mem usage/free/total/usage_ratio:"
        f" 227.25GB/28.63GB/255.98GB/88.81% | {rates} | global batch size:   256 |"
    )
    assert brief(text.encode(), "megatron") == [
        ("step_time", 2.7, "global", 125, 31),
        ("memory", 227.25, "per_rank", 125, 31),
        ("tflops", tflops, "per_gpu", 125, 31),
        ("tokens_per_second", tokens, "per_gpu", 125, 31),
        ("global_batch_size", 256, "global", 125, 31),
    ]
