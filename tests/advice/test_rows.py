"""Rows of sizes and strategies against a measured step."""

from __future__ import annotations

from hpc_train.advice.verdicts import advise
from tests.advice.questions import ask, gpt, row_of, step


def test_another_strategy_may_communicate_less_than_the_measured_one() -> None:
    advice = advise(ask(gpt(), measured=(step(0.5, ranks=8),)))
    same, other = row_of(advice, "ddp", 8).step, row_of(advice, "fsdp", 8).step
    assert same.low == 0.5
    assert 0 < other.low < 0.5
