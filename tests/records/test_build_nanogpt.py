"""build-nanogpt, its forks and nanochat."""

from __future__ import annotations

import pytest

from hpc_train.records.parse_stats import ParseStats
from tests.records.parse_text import parse

LINE = (
    "step   843 | loss: 0.315987 | lr 1.7098e-03 | norm: 0.4969 | dt: 471.28ms | tok/sec: 34764.61"
)
Found = list[tuple[str, float, str, int | None, str]]


def found(text: str) -> Found:
    return [
        (hit.metric, hit.value, hit.scope, hit.step, hit.variant)
        for _, hit, _ in parse(text.encode())
    ]


def test_line() -> None:
    assert found(LINE) == [
        ("loss", 0.315987, "global", 843, ""),
        ("learning_rate", 0.0017098, "global", 843, ""),
        ("grad_norm", 0.4969, "global", 843, ""),
        ("step_time", 0.47128, "global", 843, ""),
        ("tokens_per_second", 34764.61, "global", 843, ""),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "step 4, loss: 6.5000, dt: 100.50ms, tok/sec: 16000.25",
        "step    4 | loss: 6.500000 | dt: 100.50ms | tok/sec: 16000.25",
        "step: 4 | train loss: 6.5000 | lr: 0.0006 |  norm: 1.5 | dt: 100.50ms | tok/sec: 16000.25",
    ],
)
def test_forms(line: str) -> None:
    rows = [row for row in found(line) if row[0] in ("loss", "step_time", "tokens_per_second")]
    assert rows == [
        ("loss", 6.5, "global", 4, ""),
        ("step_time", 0.1005, "global", 4, ""),
        ("tokens_per_second", 16000.25, "global", 4, ""),
    ]


def test_nanochat() -> None:
    line = (
        "step 00020/21400 (0.09%) | loss: 5.123456 | grad norm: 0.5012 | lrm: 1.00 | "
        "dt: 338.10ms | tok/sec: 1,550,689 | mfu: 47.60 | total time: 0.06m"
    )
    assert found(f"\r{line}") == [
        ("loss", 5.123456, "global", 20, "running_average"),
        ("grad_norm", 0.5012, "global", 20, ""),
        ("step_time", 0.3381, "global", 20, ""),
        ("tokens_per_second", 1550689.0, "global", 20, ""),
        ("mfu", 0.476, "per_gpu", 20, ""),
    ]


@pytest.mark.parametrize("prefix", ["[rank0]: ", "0: ", "2025-01-01 10:00:00 "])
def test_behind_a_prefix(prefix: str) -> None:
    assert found(prefix + LINE) == found(LINE)


def test_number_that_was_cut_is_left_out() -> None:
    census = ParseStats()
    assert len(parse(LINE[:-2].encode(), census=census)) == 4
    assert census.damaged == {"log": 1}


@pytest.mark.parametrize(
    "line",
    [
        "step 10 | dt: 338.10ms | tok/sec: 1550689.13",
        "[     64/   8192] | loss: 0.5000000 | dt:  12.50ms | tok/sec:  5120.25",
        "iter 10: loss 3.2847, time 135.21ms, tok/sec: 1550689.13",
    ],
)
def test_lines_of_others(line: str) -> None:
    assert not parse(line.encode(), "build_nanogpt")
