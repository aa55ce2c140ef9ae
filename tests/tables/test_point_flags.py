"""What a reader is told to distrust, where a number lies on the border."""

from __future__ import annotations

from math import nan

import pytest

from hpc_train.model.quality_flag import Flag, FlagCode
from hpc_train.tables.point_flags import _ratio, _same_samples


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
