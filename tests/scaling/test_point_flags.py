"""What a reader is told to distrust, where a number lies on the border."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hpc_train.scaling.group_reductions import moments
from hpc_train.scaling.run_flags import Flag, FlagCode
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import (
    _changed,
    _equal,
    _ratio,
    _same_samples,
    _Sample,
    _whole_seconds,
    speedup_frame,
)
from tests.scaling.studies import expected, rate, study


def row(efficiency: float, low: float = 0.5) -> dict[str, float]:
    return {"efficiency": efficiency, "efficiency_low": low}


# 2 x 0.375 and the like need not be 0.75 to the last digit.
@pytest.mark.parametrize("efficiency", [0.75, 0.75 - 1e-12, 0.76, nan])
def test_what_reaches_its_gate_is_not_flagged(efficiency: float) -> None:
    assert _ratio(row(efficiency), 0.75) == []


def test_what_is_below_its_gate_is_flagged() -> None:
    assert _ratio(row(0.749), 0.75) == [Flag(FlagCode.GATE, "efficiency 0.749 < 0.75")]
    assert _ratio(row(0.749), None) == []


@pytest.mark.parametrize(
    ("efficiency", "low", "flagged"),
    [
        (1.0, nan, False),
        (1.0004, nan, False),
        (1.001, nan, True),
        (1.2, 1.0, False),
        (1.2, 1.01, True),
    ],
)
def test_only_what_is_shown_as_more_than_1_is_superlinear(
    efficiency: float, low: float, flagged: bool
) -> None:
    found = _ratio(row(efficiency, low), None)
    assert (FlagCode.SUPERLINEAR in {flag.code for flag in found}) is flagged


@pytest.mark.parametrize(
    ("samples", "same"),
    [(1000.0, True), (1010.0, True), (990.0, True), (1050.0, False), (950.0, False), (nan, False)],
)
def test_losses_are_compared_after_as_many_samples(samples: float, same: bool) -> None:
    assert _same_samples({"samples_seen": samples}, {"samples_seen": 1000.0}) is same


@pytest.mark.parametrize(("second", "interval"), [([9.0, 9.0], False), ([9.0, 9.1], True)])
def test_equal_repetitions_are_flagged_and_have_no_interval_of_width_0(
    second: list[float], *, interval: bool
) -> None:
    runs = [expected(f"{nodes}-{i}", nodes=nodes) for nodes in (1, 2) for i in (0, 1)]
    values = zip(runs, [5.0, 5.0, *second], strict=True)
    asked = study(runs)
    frame = speedup_frame(
        run_frame(asked, [r for run, x in values for r in rate(run.run_id, x)]), asked
    )
    equal = Flag(FlagCode.NO_SPREAD, "2 equal values")
    assert [equal in flags for flags in frame["flags"]] == [True, not interval]
    assert frame["speedup_low"].notna().tolist() == [False, interval]


@given(st.floats(1e-99, 1e99), st.integers(2, 40))
def test_the_rounding_of_a_mean_is_no_spread(value: float, number: int) -> None:
    values = np.full(number, value)
    found = moments(values, np.zeros(number, dtype=np.int64), 1)
    sample = _Sample(*(float(one[0]) for one in found))
    assert _equal(sample) == [Flag(FlagCode.NO_SPREAD, f"{number} equal values")]
    other = np.append(values, value * (1 + 1e-9))
    found = moments(other, np.zeros(number + 1, dtype=np.int64), 1)
    assert _equal(_Sample(*(float(one[0]) for one in found))) == []


def flagged(*points: list[float], gate: float | None = None) -> list[list[str]]:
    """Return the flags of points on 1, 2 … nodes; each number is the rate of a run."""
    runs = [
        (expected(f"{nodes}-{i}", nodes=nodes), value)
        for nodes, values in enumerate(points, start=1)
        for i, value in enumerate(values)
    ]
    asked = study([run for run, _ in runs], efficiency=gate)
    records = [one for run, value in runs for one in rate(run.run_id, value)]
    frame = speedup_frame(run_frame(asked, records), asked)
    return [[str(flag) for flag in own] for own in frame["flags"]]


def test_a_point_of_one_run_and_one_whose_baseline_is_one_run_have_no_interval() -> None:
    assert flagged([10.0], [19.0]) == [["n=1: no interval"]] * 2
    assert flagged([10.0], [19.0, 19.5]) == [
        ["n=1: no interval"], ["baseline n=1: no interval"],
    ]  # fmt: skip
    assert flagged([10.0, 10.5], [19.0, 19.5]) == [[], []]


def test_a_gate_and_an_implausible_efficiency_are_flagged_at_their_point() -> None:
    one, two, three = flagged([10.0, 10.1], [14.0, 14.1], [60.0, 60.1], gate=0.9)
    assert one == []
    assert [text.partition(":")[0] for text in two] == ["gate"]
    assert [text.partition(":")[0] for text in three] == ["efficiency"]
    assert "199" in three[0] and "check units, batch and baseline" in three[0]


def test_an_efficiency_is_implausible_above_one_and_a_half() -> None:
    assert _ratio(row(1.5, 1.4), None) == [Flag(FlagCode.SUPERLINEAR, "check cache, batch, clocks")]
    assert [flag.code for flag in _ratio(row(1.51, 1.4), None)] == [FlagCode.EFFICIENCY]


def test_times_in_whole_seconds_bound_the_speedup() -> None:
    assert _whole_seconds(9, 20) == [
        Flag(FlagCode.WHOLE_SECONDS, "true speedup between 2.00 and 2.33")
    ]
    assert _whole_seconds(0, 20) == [Flag(FlagCode.WHOLE_SECONDS, "a time of 0 s is less than 1 s")]
    assert _whole_seconds(9, nan) == []


def test_a_change_of_accuracy_is_told_in_points_and_one_of_loss_is_not() -> None:
    assert _changed(FlagCode.ACCURACY, -0.0123, 0.004) == Flag(
        FlagCode.ACCURACY, "-1.23 points, noise explains 0.40"
    )
    assert _changed(FlagCode.LOSS, 0.2, 0.03) == Flag(FlagCode.LOSS, "+0.2, noise explains 0.03")
