"""Measured peaks of the resident set are within the bounds, and near the middle of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.advice.advice import MeasuredStep
from hpc_train.advice.program import ProgramSize
from hpc_train.advice.verdicts import advise
from tests.advice.measured_memory import PEAKS, RETURNED_PEAKS, Peak, predicted
from tests.advice.questions import A100, ask, gpt, other, row_of, step

PAGE = Path(__file__).parents[2] / "docs" / "advise.md"
ERROR = 0.1


@pytest.mark.parametrize("peak", PEAKS, ids=lambda peak: peak.strategy)
def test_the_measured_peak_is_as_the_formulas_have_it(peak: Peak) -> None:
    found = predicted(*peak[:3])
    assert found.high is not None
    assert found.low <= peak.gib <= found.high
    middle = (found.low + found.high) / 2
    assert middle == pytest.approx(peak.gib, rel=ERROR)


@pytest.mark.parametrize("peak", RETURNED_PEAKS, ids=lambda peak: peak.strategy)
def test_a_peak_without_freed_memory_is_within_the_bounds(peak: Peak) -> None:
    found = predicted(*peak[:3])
    assert found.high is not None
    assert found.low <= peak.gib <= found.high
    text = PAGE.read_text(encoding="utf-8")
    assert f"{peak.gib:.2f} GiB" in text


STEPS = (step(3.6), step(1.0, 4), step(0.6, 8), step(0.4, 16))


def said(machine: object = A100, **limits: float) -> tuple[str, ...]:
    question = ask(gpt(steps=1000), machine, 1, 4, 8, 16, measured=STEPS, **limits)  # type: ignore[arg-type]
    return advise(question).choices


def test_the_cheapest_size_in_time() -> None:
    # 4 GPUs: 1,000 s and 1.11 GPU-hours; 8 are faster and cost 1.33, 16 cost 1.78.
    (text,) = said(deadline_s=1000)
    assert text == "Cheapest in time: ddp on 4 GPUs, at most 16.7 min and 1.11 GPU-h."
    (text,) = said(deadline_s=3600)
    assert text.startswith("Cheapest in time: single on 1 GPU, at most 1.00 h and 1.00 GPU-h")


def test_the_fastest_within_the_budget() -> None:
    (text,) = said(budget_gpu_hours=1.4)
    assert text == ("Fastest within the budget: ddp on 8 GPUs, at most 10.0 min and 1.33 GPU-h.")


def test_both_limits() -> None:
    cheapest, fastest = said(A100, deadline_s=700, budget_gpu_hours=2)
    assert cheapest.endswith("ddp on 8 GPUs, at most 10.0 min and 1.33 GPU-h.")
    assert fastest.endswith("ddp on 16 GPUs, at most 6.67 min and 1.78 GPU-h.")


def test_limits_that_nothing_meets_for_certain_have_no_choice() -> None:
    assert said(deadline_s=100) == ()
    assert said() == ()
    assert advise(ask(gpt(steps=1000), deadline_s=1e9)).choices == ()


@pytest.mark.parametrize("measured", [step(0.72), step(3.6, data_share=0.6)])
def test_a_gpu_is_made_faster_first_only_if_it_computes_too_little(
    measured: MeasuredStep,
) -> None:
    """At 25 % of the peak it does not; where it waits for data, that is the first step."""
    assert "Make one GPU faster" not in advise(ask(gpt(), measured=(measured,))).one_rank


@pytest.mark.parametrize(
    ("program", "assumed"),
    [
        (gpt(), 0),
        (other(), 2),
        (other(sources={"precision": "--condition"}), 1),
        (other(sources={"precision": "--condition", "optimizer": "--condition"}), 0),
    ],
)
def test_only_what_is_not_stated_is_assumed(program: ProgramSize, assumed: int) -> None:
    missing = advise(ask(program)).missing
    assert sum("taken as" in text for text in missing) == assumed


def test_another_strategy_may_communicate_less_than_the_measured_one() -> None:
    advice = advise(ask(gpt(), measured=(step(0.5, ranks=8),)))
    same, other = row_of(advice, "ddp", 8).step, row_of(advice, "fsdp", 8).step
    assert same.low == 0.5
    assert 0 < other.low < 0.5
