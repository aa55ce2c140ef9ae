"""At each size the fastest series is found, and called faster no more often than the level says."""

import numpy as np
import pytest

from hpc_train.scaling.comparison import _comparisons, _pairs, fastest_frame
from hpc_train.scaling.points import welch
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from tests.scaling.arrays import along_axis, ratio_interval
from tests.scaling.strategies import NOISE, SLOW_AND_FAST, tables
from tests.scaling.studies import expected, foreign, rate, record, study


def test_the_fastest_is_the_one_with_the_highest_rate_not_the_one_that_scales_best() -> None:
    found = tables(SLOW_AND_FAST)
    largest = found.points[found.points["nodes"] == 8].set_index("series")
    assert largest["efficiency"].tolist() == pytest.approx([1.0, 0.7])
    assert found.fastest["nodes"].tolist() == [1, 2, 4, 8]
    assert set(found.fastest["fastest"]) == {"launcher=B"}
    assert set(found.fastest["verdict"]) == {"faster"}
    assert found.fastest["ratio"].tolist()[-1] == pytest.approx(2.1)


def test_the_interval_is_that_of_two_samples_at_the_level_of_all_pairs_undecided() -> None:
    rates = {"A": lambda n: 100.0 * n, "B": lambda n: 104.0 * n, "C": lambda n: 90.0 * n}
    found = tables(rates, sizes=(1, 2))
    # Three pairs at each of two sizes, though only two of them are rows.
    assert found.fastest["comparisons"].tolist() == [6] * 4
    first = found.fastest.iloc[0]
    b, a = ([value * factor for factor in NOISE] for value in (104.0, 100.0))
    assert first["series"] == "launcher=A"
    # The two rows of C are decided at 1 - 0.05/6 and leave.
    wanted = ratio_interval(b, a, 1 - 0.05 / 4)
    assert first[["ratio", "ratio_low", "ratio_high"]].tolist() == pytest.approx(list(wanted))
    assert found.fastest["level"].tolist() == pytest.approx([1 - 0.05 / 4, 1 - 0.05 / 6] * 2)
    assert (ratio_interval(b, a, 1 - 0.05 / 6).low or 2) < 1 < first["ratio_low"]
    assert first["verdict"] == "faster"


def test_equal_series_are_called_different_in_5_of_100_studies() -> None:
    """Corrected for the ratios in the rows only, it would be 10 of 100."""
    studies, series, jobs = 4000, 8, 10
    rates = 0.02 * np.random.default_rng(5).standard_normal((studies * series, jobs))
    own = along_axis(rates)
    pairs = _pairs(np.arange(studies).repeat(series), own.mean)
    compared = _comparisons(pairs, own.number) / studies
    assert compared == 28

    def called(level: float) -> float:
        low = welch(own.of(pairs.fastest), own.of(pairs.other), level).low
        return len(np.unique(pairs.fastest[low > 1])) / studies

    assert 0.02 <= called(1 - 0.05 / compared) <= 0.05
    assert called(1 - 0.05 / (series - 1)) > 0.08


def test_failed_series_and_single_runs_have_no_verdict() -> None:
    found = tables(SLOW_AND_FAST, failed=[("B", 8), ("A", 4)]).fastest.set_index("nodes")
    assert found["verdict"].tolist() == ["faster", "faster", "no result", "no result"]
    assert found.loc[8, "fastest"] == "launcher=A"
    assert found.loc[8, "not_ok"] == "3 FAILED"
    alone = tables(SLOW_AND_FAST, noise=(1.0,)).fastest
    assert set(alone["verdict"]) == {"n=1: no verdict"}
    assert alone["ratio"].notna().all()
    assert tables({"A": SLOW_AND_FAST["A"]}).fastest.empty


@pytest.mark.parametrize(
    "work",
    [
        {"A": (64, {"model": "small"}), "B": (64, {"model": "large"})},
        {"A": (64, {}), "B": (128, {})},
    ],
)
def test_series_with_different_work_are_not_compared(
    work: dict[str, tuple[float, dict[str, str]]],
) -> None:
    found = tables(SLOW_AND_FAST, work=work)
    assert found.fastest.empty


def test_each_model_has_a_fastest_series_of_its_own() -> None:
    rates = {name: (lambda n, x=x: x * n) for name, x in (("a", 9.0), ("b", 8), ("c", 2), ("d", 3))}
    work = {name: (64, {"model": "small" if name in "ab" else "large"}) for name in rates}
    found = tables(rates, sizes=(1, 2), work=work)
    wanted = ["launcher=a", "launcher=d"]
    assert found.fastest[["group", "fastest"]].drop_duplicates().to_numpy().tolist() == [
        [number, name] for number, name in enumerate(wanted)
    ]


def test_times_in_whole_seconds_decide_less() -> None:
    runs = [expected(f"{name}-{k}", axes={"launcher": name}) for name in "AB" for k in range(6)]
    times = {"A": (30, 31), "B": (27, 29)}
    asked = study(runs)
    records = [
        record(run.run_id, "epoch_time", times[run.run_id[0]][int(run.run_id[2:]) % 2])
        for run in runs
    ]
    frame = run_frame(asked, records)
    lows = []
    for cut in (True, False):
        frame = frame.assign(whole_seconds=cut)
        found = fastest_frame(frame, speedup_frame(frame, asked), asked).iloc[0]
        lows.append(found["ratio_low"])
    # The 28 s may have been 29 s.
    assert lows[0] == pytest.approx(lows[1] * 28 / 29)


@pytest.mark.parametrize("second", [10.0, 8.0])
def test_equal_repetitions_of_two_series_have_no_verdict(second: float) -> None:
    runs = [expected(f"{name}-{k}", axes={"launcher": name}) for name in "AB" for k in range(3)]
    speeds = {"A": 10.0, "B": second}
    asked = study(runs)
    frame = run_frame(asked, [r for run in runs for r in rate(run.run_id, speeds[run.run_id[0]])])
    found = fastest_frame(frame, speedup_frame(frame, asked), asked).iloc[0]
    assert found["verdict"] == "no spread: no verdict"


def test_logs_without_a_size_are_not_compared_at_one_size() -> None:
    logs = [foreign("a.log"), foreign("b.log", 2)]
    asked = study(logs)
    runs = run_frame(asked, [*rate("a.log", 10), *rate("b.log", 18)])
    assert fastest_frame(runs, speedup_frame(runs, asked), asked).empty
