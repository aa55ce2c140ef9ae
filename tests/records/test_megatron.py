"""Megatron-LM and its descendants."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.records.parse_stats import ParseStats
from tests.records.parse_text import brief, parse, values

LOG = (Path(__file__).parents[1] / "logs/megatron/four_ranks.out").read_bytes()
LINE = b" iteration %d/ 100 | elapsed time per iteration (ms): %d.0 | global batch size:  8 |\n"


def test_times_are_means_of_the_log_interval() -> None:
    times: list[object] = [
        (hit.step, hit.value, hit.steps, hit.scope)
        for _, hit, _ in parse(LOG)
        if hit.metric == "step_time"
    ]
    assert times == [
        (10, pytest.approx(0.9005), 10, "global"),
        (20, pytest.approx(0.6005), 10, "global"),
        (30, pytest.approx(0.6105), 10, "global"),
    ]


def test_a_line_after_lines_that_are_missing_is_the_mean_of_one_interval() -> None:
    text = b"  log_interval .................................... 10\n"
    text += b"".join(LINE % (step, 900) for step in (10, 20, 50))
    found = [(hit.step, hit.steps) for _, hit, _ in parse(text) if hit.metric == "step_time"]
    assert found == [(10, 10), (20, 10), (50, 10)]


def test_sizes_of_the_job() -> None:
    assert set(values(LOG, "world_size")) == {4}
    assert set(values(LOG, "sequence_length")) == {512}
    assert values(LOG, "global_batch_size") == [8, 8, 8, 8]


def test_losses() -> None:
    losses = [
        (hit.step, hit.value, hit.variant) for _, hit, _ in parse(LOG) if hit.metric == "loss"
    ]
    assert losses == [(20, 9.5, ""), (30, 8.25, ""), (30, 8.125, "validation")]


def test_memory_of_ranks_that_share_a_line() -> None:
    found = [(who, hit.variant, hit.value) for _, hit, who in parse(LOG) if hit.metric == "memory"]
    assert found == [
        (3, "max_allocated", 2.0),
        (3, "max_reserved", 4.0),
        # The other maximum of rank 2 is cut.
        (2, "max_allocated", 1.5),
        (0, "max_allocated", 0.5),
        (0, "max_reserved", 1.0),
    ]


def test_memory_in_gigabytes() -> None:
    text = (
        b"[Rank 1] (after 2 iterations) memory (GB) | mem-allocated-gigabytes: 63.66 | "
        b"mem-max-allocated-gigabytes: 107.3741824 | mem-max-reserved-gigabytes: 214.7483648 | "
        b"mem-alloc-retires: 0"
    )
    assert values(text, "memory") == [pytest.approx(100.0), pytest.approx(200.0)]


def test_timers() -> None:
    phases: list[object] = [
        (hit.variant, hit.value, hit.step) for _, hit, _ in parse(LOG) if hit.metric == "phase_time"
    ]
    assert phases == [
        ("model-and-optimizer-setup", pytest.approx(0.2505), None),
        ("train/valid/test-data-iterators-setup", pytest.approx(0.31025), None),
        ("forward-compute", pytest.approx(0.1005), 10),
        ("backward-compute", pytest.approx(0.20025), 10),
        ("optimizer", pytest.approx(0.05), 10),
    ]


@pytest.mark.parametrize(
    ("head", "row", "expected"),
    [
        (
            "(min, max) time across ranks (ms):",
            "    forward-backward ...............: (100.25, 200.50)",
            {"forward-backward min": 0.10025, "forward-backward max": 0.2005},
        ),
        (
            "max time across ranks (ms):",
            "    save-checkpoint ................: 300.75",
            {"save-checkpoint max": 0.30075},
        ),
    ],
)
def test_table_of_timers(head: str, row: str, expected: dict[str, float]) -> None:
    text = f"{head}\n{row}\n{row}\nno row\n{row}\n".encode()
    found = [(hit.variant, hit.value) for _, hit, _ in parse(text, "megatron")]
    assert [variant for variant, _ in found] == [*expected] * 2
    assert [value for _, value in found] == pytest.approx([*expected.values()] * 2)


def test_newest_fields_in_any_order() -> None:
    text = (
        b" [2026-01-01 10:00:00.123456] iteration      292/95367431 | consumed samples: 9344 |"
        b" lm loss: 2.5E+00 | power per GPU (W/GPU): 650.5 | energy per GPU (J/iter/GPU): 1990.5 |"
        b" throughput per GPU (TFLOP/s/GPU): 478.5 | elapsed time per iteration (ms): 3000.0 |"
    )
    assert brief(text, "megatron") == [
        ("loss", 2.5, "global", 292, None),
        ("power", 650.5, "per_gpu", 292, None),
        ("energy", 1990.5, "per_gpu", 292, None),
        ("tflops", 478.5, "per_gpu", 292, None),
        ("step_time", 3.0, "global", 292, None),
    ]


def test_number_without_a_bar_behind_it_may_be_cut() -> None:
    census = ParseStats()
    text = b" iteration 5/ 9 | global batch size:  8 | elapsed time per iteration (ms): 13"
    assert [hit.metric for _, hit, _ in parse(text, census=census)] == ["global_batch_size"]
    assert census.damaged["log"] == 1


@pytest.mark.parametrize("rate", ["nan", "inf", "1e999", "1e308EFLOPS"])
def test_what_is_no_number_states_nothing(rate: str) -> None:
    census = ParseStats()
    text = (
        f" iteration 5/ 9 | approx flops per GPU: {rate} | elapsed time per iteration (ms): 5.0 |"
    )
    found = [hit.metric for _, hit, _ in parse(text.encode(), census=census) if hit.value < 1e50]
    assert found == ["step_time"]
    assert not census.damaged["log"]


def test_two_lines_in_one() -> None:
    census = ParseStats()
    text = b" iteration 5/ 9 | elapsed time per iteration (ms): 20.0 | lm loss: 1.2" + LINE % (
        6,
        30,
    )
    found = [(hit.step, hit.value) for _, hit, _ in parse(text, census=census)]
    assert found == [(5, pytest.approx(0.02)), (6, pytest.approx(0.03)), (6, 8)]
    assert census.damaged["log"] == 1


def test_line_without_its_start_is_damaged() -> None:
    census = ParseStats()
    assert not parse(b"00 | elapsed time per iteration (ms): 20.0 |", census=census)
    assert census.damaged["log"] == 1


def test_text_about_the_lines_is_none() -> None:
    census = ParseStats()
    text = b"log_string += ' elapsed time per iteration (ms): {:.1f} |'.format(seconds)"
    assert not parse(text, census=census)
    assert not census.damaged["log"]


def test_parameters_of_each_part_of_the_model() -> None:
    one = " > number of parameters on (tensor, pipeline) model parallel rank (0, 1): 1000"
    two = " > number of parameters on (tensor, pipeline) model parallel rank (3, 0): 2000"
    hits = [hit for _, hit, _ in parse(f"{one}{two}\n{one}x\n{one[:-9]}\n".encode(), "megatron")]
    assert [(hit.value, hit.variant, hit.scope) for hit in hits] == [
        (1000, "tensor 0, pipeline 1", "per_rank"),
        (2000, "tensor 3, pipeline 0", "per_rank"),
    ]
