"""The cheapest size in time, and the fastest within the budget."""

from __future__ import annotations

from hpc_train.advice.verdicts import advise
from tests.advice.questions import A100, ask, gpt, step

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
