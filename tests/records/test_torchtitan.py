"""torchtitan's lines, coloured or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.records.parse_stats import ParseStats
from tests.records.parse_text import parse, values

LOGS = Path(__file__).parents[1] / "logs/torchtitan"
COLOURS = (LOGS / "colours.log").read_bytes()


def test_coloured_log() -> None:
    found = [
        (hit.metric, hit.value, hit.step, hit.steps, hit.variant) for _, hit, _ in parse(COLOURS)
    ]
    assert found == [
        ("world_size", 16, None, 1, ""),
        ("global_batch_size", 64, None, 1, ""),
        ("sequence_length", 4096, None, 1, ""),
        ("loss", 12.25, 1, 1, ""),
        ("grad_norm", 2.5, 1, 1, ""),
        ("memory", 40.25, 1, 1, ""),
        ("tokens_per_second", 1500, 1, 1, ""),
        ("tflops", 80.5, 1, 1, ""),
        ("mfu", pytest.approx(0.0814), 1, 1, ""),
        ("loss", 9.5, 10, 1, ""),
        ("grad_norm", 1.25, 10, 1, ""),
        ("memory", 42.5, 10, 1, ""),
        ("tokens_per_second", 12500, 10, 9, ""),
        ("tflops", 1020.25, 10, 9, ""),
        ("mfu", pytest.approx(0.5125), 10, 9, ""),
        ("loss", 9.75, 10, 1, "validation"),
        ("memory", 44, 10, 1, "validation"),
        ("tokens_per_second", 30250, 10, 1, "validation"),
        ("loss", 8.5, 20, 1, ""),
        ("grad_norm", 1.0, 20, 1, ""),
        ("memory", 42.5, 20, 1, ""),
        ("tokens_per_second", 12600, 20, 10, ""),
        ("tflops", 1030, 20, 10, ""),
    ]


def test_word_diff_gives_the_new_values_once() -> None:
    text = (LOGS / "word_diff.log").read_bytes()
    found = [(hit.metric, hit.value) for _, hit, _ in parse(text)]
    step = [
        ("loss", 7.8704),
        ("grad_norm", 1.5185),
        ("memory", 1.67),
        ("tokens_per_second", 34083),
        ("tflops", 2.54),
        ("mfu", pytest.approx(0.0026)),
    ]
    assert found == [("world_size", 2), *step, *step]


def test_loss_of_all_ranks_counts_once() -> None:
    line = b"step:  1  loss:  2.5000  memory:  1.00GiB(1.00%)  tps: 1,000  mfu: 1.00%\n"
    text = b"[rank0]:" + line + b"[rank1]:" + line
    found = [(who, hit.metric) for _, hit, who in parse(text) if hit.metric != "memory"]
    assert found.count((0, "tokens_per_second")) == found.count((1, "tokens_per_second")) == 1
    assert {hit.once for _, hit, _ in parse(text) if hit.metric == "loss"} == {" 1"}
    assert {hit.once for _, hit, _ in parse(text) if hit.metric == "mfu"} == {""}


def test_oldest_form() -> None:
    line = b"step: 10  loss:  9.5000  memory: 1.00GiB(1.00%)  wps: 2,500  mfu: 20.00%"
    assert values(line, "tokens_per_second") == [2500]


def test_rank_of_primus() -> None:
    line = b"[20250101][rank-5/8][INFO ] step: 1  loss:  2.5000  tps: 1,000  mfu: 1.00%"
    assert {who for _, _, who in parse(line)} == {5}


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        (b"step: 10  loss:  9.5000  tps: 2,5", ["loss"]),
        (b"step: 10  loss:  9.5000  tps: 2,500  mfu: 20.0", ["loss", "tokens_per_second"]),
        (b"validate step: 10  loss:  9.5000  tps: 2,50", ["loss"]),
    ],
)
def test_last_number_of_a_cut_line_is_left_out(line: bytes, kept: list[str]) -> None:
    census = ParseStats()
    assert [hit.metric for _, hit, _ in parse(line, census=census)] == kept
    assert census.damaged["log"] == 1


def test_mesh_without_dimensions_is_one_gpu() -> None:
    assert values(b"Building 0-D device mesh with [], []", "world_size") == [1]


STEP = "2025-01-01 10:00:00,000 - root - INFO - step: 10  loss: {}  tps: 1,500  mfu: 10.50%\n"


def test_rank_below_an_agent_is_local() -> None:
    text = "".join(f"{task}: [rank0]:{STEP.format('2.5000')}" for task in (0, 1, 2))
    found = [(who, hit.steps) for _, hit, who in parse(text.encode()) if hit.metric == "mfu"]
    assert found == [(0, 1), (None, 1), (None, 1)]


def test_loss_of_stages_that_compute_none() -> None:
    text = f"[rank0]:{STEP.format('-1.0000')}[rank7]:{STEP.format(' 9.5000')}"
    assert values(text.encode(), "loss") == [9.5]
    assert values(text.encode(), "tokens_per_second") == [1500, 1500]
