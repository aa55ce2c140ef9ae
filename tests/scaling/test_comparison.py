from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from hpc_train.scaling.comparison import comparison_frame
from hpc_train.scaling.runs import run_frame
from tests.scaling.arrays import ratio_interval
from tests.scaling.studies import expected, rate, record, study

NOISE = (0.99, 1.0, 1.01)


def runs(rates: Mapping[int, Sequence[float]], batch: float = 64, **axes: Any) -> pd.DataFrame:
    """`rates[nodes]`: one run for each throughput; a failed one for 0."""
    named = {f"{n}-{i}": (n, x) for n, xs in rates.items() for i, x in enumerate(xs)}
    asked = [
        expected(
            name,
            nodes=n,
            axes={"nodes": n, **axes},
            state="COMPLETED" if x else "FAILED",
        )
        for name, (n, x) in named.items()
    ]
    records = [r for name, (_, x) in named.items() if x for r in rate(name, x, batch)]
    return run_frame(study(asked), records)


def row(a: pd.DataFrame, b: pd.DataFrame, at: int = 0, **wanted: Any) -> dict[str, Any]:
    found = comparison_frame(a, b, **wanted).iloc[at].to_dict()
    return {str(name): value for name, value in found.items()}


def around(mean: float, spread: float = 1.0) -> list[float]:
    return [mean * (1 + spread * (x - 1)) for x in NOISE]


def test_the_ratio_is_that_of_the_two_samples() -> None:
    a, b = around(100), around(110, 2)
    found = row(runs({2: a}), runs({2: b}))
    value, low, high = ratio_interval(b, a)
    assert (found["ratio"], found["ratio_low"], found["ratio_high"]) == pytest.approx(
        (value, low, high)
    )
    assert (found["a"], found["n_a"], found["verdict"]) == (
        pytest.approx(100, rel=1e-3), 3, "B better",
    )  # fmt: skip


def test_less_throughput_is_worse_and_noise_is_no_difference() -> None:
    assert row(runs({1: around(100)}), runs({1: around(90)}))["verdict"] == "B worse"
    same = row(runs({1: around(100)}), runs({1: around(100.5)}))
    assert same["verdict"] == "no difference seen at this n"


@pytest.mark.parametrize("speed", [7.3, 5.0])
def test_equal_repetitions_on_both_sides_have_no_interval_and_no_verdict(speed: float) -> None:
    found = row(runs({1: [7.3] * 3}), runs({1: [speed] * 7}))
    assert found["ratio"] == pytest.approx(speed / 7.3)
    assert pd.isna(found["ratio_low"])
    assert found["verdict"] == "no spread: no verdict"


def test_shorter_times_are_better() -> None:
    a, b = [
        run_frame(
            study([expected(f"r{i}") for i in range(3)]),
            [record(f"r{i}", "epoch_time", t * x, scope="per_rank") for i, x in enumerate(NOISE)],
        )
        for t in (10, 8)
    ]
    found = row(a, b)
    assert (found["basis"], found["verdict"]) == ("epoch time", "B better")
    assert found["ratio"] == pytest.approx(1.25)
    assert found["b"] == pytest.approx(8)


@pytest.mark.parametrize(
    ("changes", "undecided"),
    # Two decided at 1 - 0.05/4 leave 2; with one more, the last one is alone and decided too.
    [((1.024, 1.024, 1.05, 0.95), (2, 2, 4, 4)), ((1.024, 1.03, 1.05, 0.95), (1, 2, 4, 4)),
     ((1.024, 1.024, 1.001, 0.95), (3, 3, 3, 4))],
)  # fmt: skip
def test_a_decided_point_leaves_the_others_more(
    changes: Sequence[float], undecided: Sequence[int]
) -> None:
    """Holm's step-down: each interval is at the level at which its point is decided."""
    one = {n: around(100 * n) for n in (1, 2, 4, 8)}
    two = {n: [x * change for x in one[n]] for n, change in zip(one, changes, strict=True)}
    found = comparison_frame(runs(one), runs(two))
    levels = [1 - 0.05 / m for m in undecided]
    assert found["level"].tolist() == pytest.approx(levels)
    for at, n in enumerate(one):
        wanted = ratio_interval(two[n], one[n], levels[at])
        assert found[["ratio_low", "ratio_high"]].iloc[at].tolist() == pytest.approx(wanted[1:])


def test_a_single_run_has_no_verdict() -> None:
    found = row(runs({1: [100]}), runs({1: around(150)}))
    assert found["verdict"] == "n=1: no verdict"
    assert found["why"] == "n=1 in A"
    assert found["ratio"] == pytest.approx(1.5, rel=1e-3)
    assert pd.isna(found["ratio_low"])


def test_a_change_of_accuracy_is_judged_by_students_t() -> None:
    sides = []
    for accuracies in ((0.90, 0.94), (0.80, 0.83, 0.86, 0.91)):
        names = [f"1-{i}" for i in range(len(accuracies))]
        records = [r for name in names for r in rate(name, 100, 64)]
        records += [
            record(name, "accuracy", value) for name, value in zip(names, accuracies, strict=True)
        ]
        sides.append(run_frame(study([expected(name) for name in names]), records))
    found = row(sides[0], sides[1])
    assert found["accuracy_change_pp"] == pytest.approx(100 * (0.85 - 0.92))
    # Welch's interval of the difference, as SciPy computes it.
    samples = [side["accuracy"].to_numpy() for side in sides]
    low, high = stats.ttest_ind(*samples, equal_var=False).confidence_interval(0.95)
    assert found["accuracy_limit_pp"] == pytest.approx(100 * (high - low) / 2)
    assert np.isnan(row(sides[0].iloc[:1], sides[1])["accuracy_limit_pp"])


def test_points_of_one_side_and_failed_ones_are_rows() -> None:
    table = comparison_frame(runs({1: [10], 2: [20]}), runs({1: [10], 2: [0], 4: [40]}))
    assert table["nodes"].tolist() == [1, 2, 4]
    assert table["why"].tolist()[1:] == ["B: 1 FAILED", "not in A"]
    assert table["verdict"].tolist()[1:] == ["not compared", "not compared"]
    assert table["ratio"].isna().tolist() == [False, True, True]


def test_another_batch_is_refused_unless_it_is_allowed() -> None:
    a, b = runs({1: around(100)}), runs({1: around(110)}, batch=128)
    assert row(a, b)["why"] == "global_batch differs: 64 and 128"
    assert pd.isna(row(a, b)["ratio"])
    assert row(a, b, allow_mixed=("global_batch",))["verdict"] == "B better"


def test_another_model_is_refused_but_another_torch_is_compared() -> None:
    a, b = runs({1: [100]}), runs({1: [110]})
    for field, why in (("model", "model differs: x and y"), ("torch", "n=1 in A and B")):
        first, second = (
            side.assign(conditions=pd.Series([{field: value}], dtype=object))
            for side, value in ((a, "x"), (b, "y"))
        )
        assert row(first, second)["why"] == why


def test_single_series_are_matched_by_size_and_several_by_name() -> None:
    a, b = runs({1: [100]}, launcher="srun"), runs({1: [110]}, launcher="torchrun")
    assert len(comparison_frame(a, b)) == 1
    both = pd.concat([a, b.assign(run_id="other")])
    table = comparison_frame(a, both)
    assert table["series"].tolist() == ["launcher=srun", "launcher=torchrun"]
    assert table["why"].tolist() == ["n=1 in A and B", "not in A"]


def test_whole_seconds_hide_up_to_one() -> None:
    """100.9 s are printed as 100 and 101.0 as 101: that alone makes nobody slower."""

    def cut(seconds: float, each: int = 2) -> pd.DataFrame:
        asked = [expected(f"r{i}", nodes=1, axes={"nodes": 1}) for i in range(20)]
        times = [
            record(run.run_id, "time_to_train", seconds + (i % each == 0), parser="book")
            for i, run in enumerate(asked)
        ]
        return run_frame(study(asked), times)

    assert bool(cut(100)["whole_seconds"].all())
    assert row(cut(100), cut(101))["verdict"] == "no difference seen at this n"
    assert row(cut(101), cut(100))["verdict"] == "no difference seen at this n"
    assert row(cut(2, each=20), cut(3, each=20))["verdict"] == "no difference seen at this n"
    assert row(cut(100), cut(102))["verdict"] == "B worse"
    assert row(cut(102), cut(100))["verdict"] == "B better"


def test_the_speed_of_a_side_is_a_harmonic_mean() -> None:
    found = row(runs({1: [10, 30]}), runs({1: [20, 20]}))
    assert (found["a"], found["b"]) == (pytest.approx(15), pytest.approx(20))


def test_points_without_an_interval_do_not_widen_the_others() -> None:
    one, two = around(100), around(104)
    alone = row(runs({1: one}), runs({1: two}))
    more = row(runs({1: one, 2: [200], 4: [0]}), runs({1: two, 2: [210], 4: [400]}))
    for name in ("ratio_low", "ratio_high", "level"):
        assert more[name] == pytest.approx(alone[name])


def test_sides_are_compared_by_what_both_have() -> None:
    def side(other: str) -> pd.DataFrame:
        times = [record("r0", "epoch_time", 8.0, step=1)]
        return run_frame(study([expected("r0"), expected("r1")]), [*times, record("r1", other, 10)])

    assert row(side("samples_per_second"), side("tokens_per_second"))["basis"] == "epoch time"
