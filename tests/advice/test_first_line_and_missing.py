"""What is said of one GPU, and which values are taken for granted."""

from __future__ import annotations

import pytest

from hpc_train.advice.verdicts import advise
from hpc_train.model.advice import MeasuredStep
from hpc_train.model.program_size import ProgramSize
from tests.advice.questions import ask, gpt, other, step


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
