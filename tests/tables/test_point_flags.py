"""What a reader is told to distrust, where a number lies on the border."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_train.model.quality_flag import Flag, FlagCode
from hpc_train.tables.group_reductions import moments
from hpc_train.tables.point_flags import _equal, _ratio, _same_samples, _Sample
from hpc_train.tables.runs import run_frame
from hpc_train.tables.speedup import speedup_frame
from tests.tables.studies import expected, rate, study


def row(efficiency: float, low: float = 0.5) -> dict[str, float]:
    return {"fewest": 20, "efficiency": efficiency, "efficiency_low": low}


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
