"""DeepSpeed's engines and flops profiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.records.parse_stats import ParseStats
from tests.records.parse_text import brief, parse, values

PROFILE = (Path(__file__).parents[1] / "logs/deepspeed/profile.txt").read_bytes()
TIMER = (
    b"[2024-01-01 10:00:00,000] [INFO] [timer.py:260:stop] epoch=1/micro_step=926/"
    b"global_step=1880, RunningAvgSamplesPerSec=6.5, CurrSamplesPerSec=6.25, "
    b"MemAllocated=7.75GB, MaxMemAllocated=10.5GB"
)


def test_throughput_timer() -> None:
    found = [(hit.metric, hit.value, hit.variant, hit.scope) for _, hit, _ in parse(TIMER)]
    assert found == [
        ("samples_per_second", 6.5, "running_average", "global"),
        ("samples_per_second", 6.25, "", "global"),
        ("memory", 10.5, "", "per_rank"),
    ]
    assert {hit.step for _, hit, _ in parse(TIMER)} == {1880}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"0/20, SamplesPerSec=14.437501", [14.437501]),
        (b"RunningAvgSamplesPerSec=14.25, CurrSamplesPerSec=15", [14.25]),
        (b"RunningAvgSamplesPerSec=14.25, CurrSamplesPerSec=15.125456", [14.25, 15.125456]),
    ],
)
def test_number_at_the_end_needs_its_digits(line: bytes, expected: list[float]) -> None:
    assert [hit.value for _, hit, _ in parse(line)] == expected


def test_timer_without_a_number_is_damaged() -> None:
    census = ParseStats()
    assert not parse(b"global_step=10, RunningAvgSamplesPerSec=1", census=census)
    assert census.damaged["log"] == 1


def test_pipeline_engine() -> None:
    text = (
        b"steps: 10 loss: 5.5000 iter time (s): 1.250 samples/sec: 102.400\n"
        b"steps: 20 loss: 5.2500 lm loss: 5.1 moe loss: 0.1 iter time (s): 1.000 samples/sec: 1"
    )
    found = [(hit.metric, hit.value, hit.step, hit.steps) for _, hit, _ in parse(text)]
    assert found == [
        ("loss", 5.5, 10, 1),
        ("step_time", 1.25, 10, 1),
        ("samples_per_second", 102.4, 10, 1),
        ("loss", 5.25, 20, 1),
        ("step_time", 1.0, 20, 10),
    ]


def test_pipeline_that_counts_to_an_end() -> None:
    text = b"step:    10 /   100 loss: 1.5000 iter time (s): 1.250 samples/sec: 102.400 eta: 1h5m"
    assert brief(text) == [
        ("loss", 1.5, "global", 10, None),
        ("step_time", 1.25, "global", 10, None),
        ("samples_per_second", 102.4, "global", 10, None),
    ]


def test_step_of_the_optimiser_and_its_config() -> None:
    text = (
        b"[INFO] [logging.py:96:log_dist] [Rank 0] step=200, skipped=4, lr=[0.00025, 0.0001], "
        b"mom=[(0.9, 0.999)]\n[INFO] [config.py:904:print]   train_batch_size ............. 1024\n"
        b"  train_batch_size ................ 32.........................updated\n"
    )
    assert brief(text) == [
        ("learning_rate", 0.00025, "global", 200, None),
        ("global_batch_size", 1024, "global", None, None),
        ("global_batch_size", 32, "global", None, None),
    ]


def test_wall_clock_breakdown() -> None:
    text = (
        b"[INFO] [logging.py:96:log_dist] [Rank 0] time (ms) | fwd: 25.25 | bwd: 77.50 | step: 2."
    )
    found: list[object] = [(hit.variant, hit.value) for _, hit, _ in parse(text)]
    assert found == [
        ("fwd", pytest.approx(0.02525)),
        ("bwd", pytest.approx(0.0775)),
    ]


def test_flops_profile() -> None:
    found = [(hit.metric, hit.value, hit.variant, hit.step) for _, hit, _ in parse(PROFILE)]
    assert found == [
        ("world_size", 8, "", 10),
        ("batch_size", 16, "", 10),
        ("tflops", 62.5, "forward_backward", 10),
        ("step_time", pytest.approx(0.32), "profiled", 10),
        ("tflops", 500.0, "profiled", 10),
        ("samples_per_second", 400.5, "profiled", 10),
    ]


def test_rows_without_the_head_of_a_profile_are_somebody_elses() -> None:
    assert not parse(b"samples/second:   400.5\nworld size:   8\n", "deepspeed_flops")


def test_profile_without_timers_states_nothing() -> None:
    head = b"Profile Summary at step 5:\n"
    assert not parse(head + b"samples/second:    -0.5\niter latency:   -2.8e+08 us\n")


def test_old_rates_do_not_count_accumulated_gradients() -> None:
    config = b"[2022-11-24 00:51:45,966] [INFO] [config.py:999:print]   "
    old = b"[2022-11-24 00:52:01,509] [INFO] [timer.py:198:stop] 0/4, CurrSamplesPerSec=15.723372\n"
    new = old.replace(b"0/4", b"epoch=0/micro_step=4/global_step=2")
    for steps, expected in ((b"1", [15.723372] * 2), (b"2", [15.723372])):
        head = config + b"gradient_accumulation_steps .. " + steps + b"\n"
        assert values(head + old + new, "samples_per_second") == expected
