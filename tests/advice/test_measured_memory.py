"""Measured peaks of the resident set are within the bounds, and near the middle of them."""

from pathlib import Path

import pytest

from hpc_train.advice.advice import MeasuredStep
from hpc_train.advice.program import ProgramSize
from hpc_train.advice.verdicts import advise
from tests.advice.measured_memory import PEAKS, RETURNED_PEAKS, Peak, predicted
from tests.advice.questions import ask, gpt, other, row_of, step

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
