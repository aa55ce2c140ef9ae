"""What a reader is told to distrust, where a number lies on the border."""

from math import nan

import pytest

from hpc_train.scaling.measurements import Flag, FlagCode
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import _same_samples, speedup_frame
from tests.scaling.studies import expected, rate, study


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


@pytest.mark.parametrize(("rate", "found"), [(20.005, False), (20.1, True)])
def test_only_what_is_shown_as_more_than_1_is_superlinear(rate: float, *, found: bool) -> None:
    assert ("superlinear: check cache, batch, clocks" in flagged([10.0], [rate])[1]) is found


@pytest.mark.parametrize(
    ("samples", "same"),
    [(1000.0, True), (1010.0, True), (990.0, True), (1050.0, False), (950.0, False), (nan, False)],
)
def test_losses_are_compared_after_as_many_samples(samples: float, same: bool) -> None:
    assert _same_samples({"samples_seen": samples}, {"samples_seen": 1000.0}) is same
