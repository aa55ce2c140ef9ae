"""A rate times a step time is the work of a step; what is not is a contradiction."""

from typing import Any

import pytest

from hpc_train.logs.record import Record
from hpc_train.scaling.measurements import FlagCode
from hpc_train.scaling.runs import run_frame
from tests.scaling.studies import expected, record, study


def contradicts(records: list[Record]) -> bool:
    flags: Any = run_frame(study([expected("a")]), records).at[0, "flags"]
    return FlagCode.CONTRADICTION in {flag.code for flag in flags}


def whole(rate: float, step: float, batch: float = 256, parser: str = "table") -> list[Record]:
    values = {"samples_per_second": rate, "step_time": step, "global_batch_size": batch}
    return [record("a", name, value, parser=parser) for name, value in values.items()]


@pytest.mark.parametrize(
    ("rate", "parser", "wrong"),
    [
        (500, "table", False), (450, "table", False), (560, "table", False), (940, "table", True),
        (256, "table", True), (940, "event", True),
        # A program may count evaluations in its rate, but never less than the time of the steps.
        (256, "event", False),
    ],
)  # fmt: skip
def test_rate_and_step_time_of_a_run(rate: float, parser: str, *, wrong: bool) -> None:
    assert contradicts(whole(rate, 0.512, parser=parser)) is wrong


@pytest.mark.parametrize(("rate", "wrong"), [(500.0, False), (2000.0, True)])
def test_a_printed_rate_and_the_steps_of_a_log(rate: float, *, wrong: bool) -> None:
    # One slow step of twenty: the mean is far from the median, and the rate fits one of them.
    times = [0.5] * 19 + [10.0]
    records = [
        record("a", name, value, step=step)
        for step, time in enumerate(times, start=1)
        for name, value in (("step_time", time), ("samples", 256.0))
    ]
    assert contradicts([*records, record("a", "samples_per_second", rate)]) is wrong


@pytest.mark.parametrize(("rate", "wrong"), [(1.0e6, False), (4.0e6, True), (1.0e5, False)])
def test_tokens_are_samples_of_a_known_length(rate: float, *, wrong: bool) -> None:
    records = [
        *whole(1, 0.512, parser="event")[1:],
        record("a", "tokens_per_second", rate),
        record("a", "sequence_length", 2048.0),
    ]
    assert contradicts(records) is wrong
