from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pandas as pd
import pytest

from hpc_train.base.errors import ReportError
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from hpc_train.scaling.split_series import Separated, separated
from tests.scaling.studies import expected, rate, study

Conditions = Mapping[str, str]
TORCH = ({"torch": "2.12.0"}, {"torch": "2.13.0"})


def parted(
    runs: Sequence[tuple[int, Conditions | None]],
    allowed: tuple[str, ...] = (),
    axis: str = "",
    **fields: Any,
) -> tuple[Separated, pd.DataFrame]:
    """Runs at (nodes, conditions), each with 10 samples/s a node."""
    named = [(f"r{place}", nodes, own) for place, (nodes, own) in enumerate(runs)]
    axes = [{"nodes": n, **({axis: i % 2} if axis else {})} for i, (_, n, _) in enumerate(named)]
    expectations = [
        expected(name, nodes=nodes, axes=own)
        for (name, nodes, _), own in zip(named, axes, strict=True)
    ]
    asked: ExpectedStudy = msgspec.structs.replace(
        study(expectations, **fields), allow_mixed=allowed
    )
    frame = run_frame(asked, [r for name, nodes, _ in named for r in rate(name, 10.0 * nodes)])
    frame["conditions"] = pd.Series([own for *_, own in named], dtype=object)
    found = separated(frame, asked)
    return found, speedup_frame(found.runs, asked)


def test_runs_that_agree_stay_in_one_series_without_a_word() -> None:
    found, frame = parted([(1, TORCH[0]), (2, TORCH[0])])
    assert (set(found.runs["series"]), found.notes) == ({"all"}, ())
    assert frame["speedup"].tolist() == [1.0, pytest.approx(2.0)]


def test_a_condition_that_differs_parts_the_series_and_is_named() -> None:
    found, frame = parted([(nodes, own) for nodes in (1, 2) for own in TORCH])
    assert frame["series"].tolist() == ["torch=2.12.0"] * 2 + ["torch=2.13.0"] * 2
    assert frame["n_submitted"].tolist() == [1] * 4
    assert frame["is_baseline"].tolist() == [True, False, True, False]
    assert found.notes == (
        "torch differs: 2.12.0 (2 runs, r0), 2.13.0 (2 runs, r1): separate series; "
        "--allow-mixed torch combines them",
    )


@pytest.mark.parametrize("baseline", [{}, {"nodes": 1}])
def test_sizes_that_each_have_their_own_torch_give_no_speedup(baseline: dict[str, int]) -> None:
    _, frame = parted([(1, TORCH[0]), (2, TORCH[1])], baseline=baseline)
    assert frame["speedup"].isna().tolist() == [False, True]
    assert frame["is_baseline"].tolist() == [True, False]
    assert frame["note"].tolist()[1] == (
        "no speedup: torch is 2.12.0 at the baseline (r0) and 2.13.0 here (r1); "
        "--allow-mixed torch compares them"
    )


def test_a_person_may_allow_it_and_the_report_says_so() -> None:
    found, frame = parted([(1, TORCH[0]), (2, TORCH[1]), (2, TORCH[1])], ("torch",))
    assert frame["speedup"].tolist() == [1.0, pytest.approx(2.0)]
    assert found.notes == ("allowed to differ: torch: 2.12.0 (1 run), 2.13.0 (2 runs)",)


def test_what_an_axis_sets_does_not_part_its_series() -> None:
    found, _ = parted(
        [(1, TORCH[0]), (1, TORCH[1]), (2, TORCH[1]), (2, TORCH[0])], axis="software.torch"
    )
    assert set(found.runs["series"]) == {"software.torch=0", "software.torch=1"}


def test_the_baseline_of_another_series_needs_the_same_conditions() -> None:
    runs = [(1, TORCH[0]), (1, TORCH[1]), (2, TORCH[0]), (2, TORCH[1])]
    _, frame = parted(runs, axis="launcher", baseline={"launcher": 0})
    assert frame[frame["series"] == "launcher=1"]["speedup"].isna().all()
    assert "torch is 2.12.0 at the baseline" in frame["note"].tolist()[-1]


def test_a_run_that_recorded_nothing_stays_with_its_point() -> None:
    runs = [(1, TORCH[0]), (2, TORCH[1]), (1, TORCH[0]), (2, None)]
    found, frame = parted(runs)
    assert frame["n_submitted"].tolist() == [2, 2]
    assert "not recorded by every run, assumed to match: torch (1 run)" in found.notes


@pytest.mark.parametrize(("sizes", "series"), [(("100", "104"), 1), (("100", "106"), 2)])
def test_models_are_the_same_within_five_percent(sizes: tuple[str, str], series: int) -> None:
    found, _ = parted([(1, {"parameters": sizes[0]}), (2, {"parameters": sizes[1]})])
    assert found.runs["series"].nunique() == series


def test_an_unknown_field_is_refused_with_the_nearest() -> None:
    with pytest.raises(ReportError, match=r"--allow-mixed toch: no such field; .* 'torch'") as seen:
        parted([(1, TORCH[0])], ("toch",))
    assert "partition" in seen.value.hint


def of_batches(batches: Mapping[int, Sequence[float]]) -> tuple[Separated, pd.DataFrame]:
    """Runs at `nodes: [global batch of each run]`."""
    named = [(f"n{n}-{b:g}", n, b) for n, own in batches.items() for b in own]
    asked = study([expected(name, nodes=nodes) for name, nodes, _ in named])
    records = [r for name, n, b in named for r in rate(name, 10.0 * n + b / 1e3, b)]
    found = separated(run_frame(asked, records), asked)
    return found, speedup_frame(found.runs, asked)


@pytest.mark.parametrize(
    ("batches", "regime", "series"),
    [
        ({1: [64, 128], 2: [64, 128]}, "strong", {"global_batch=64", "global_batch=128"}),
        ({1: [8, 16], 2: [16, 32], 4: [32, 64]}, "weak", {"batch_per_rank=8", "batch_per_rank=16"}),
    ],
)
def test_runs_of_one_point_with_different_batches_are_not_averaged(
    batches: Mapping[int, Sequence[float]], regime: str, series: set[str]
) -> None:
    found, frame = of_batches(batches)
    assert set(frame["regime"]) == {regime}
    assert set(frame["series"]) == series
    assert set(frame["n_ok"]) == {1}
    assert frame["speedup"].notna().all()
    assert "not averaged" in found.notes[0]


def test_a_batch_without_the_smallest_size_has_no_speedup() -> None:
    _, frame = of_batches({1: [64], 2: [64, 100]})
    assert frame["speedup"].isna().tolist() == [False, False, True]
    assert "another global batch (64 in n1-64, 100 in n2-100)" in frame["note"].tolist()[2]


def test_a_part_with_several_sizes_has_a_baseline_of_its_own() -> None:
    _, frame = parted([(1, TORCH[0]), (2, TORCH[1]), (4, TORCH[1])])
    assert frame["is_baseline"].tolist() == [True, True, False]
    assert frame["speedup"].tolist() == [1.0, 1.0, pytest.approx(2.0)]


def test_of_several_at_its_point_a_run_that_recorded_nothing_stays_with_most() -> None:
    runs = [(1, TORCH[0]), (2, TORCH[0]), (2, TORCH[1]), (2, TORCH[1]), (2, None)]
    _, frame = parted(runs)
    two = frame[frame["nodes"] == 2]
    assert dict(zip(two["series"], two["n_submitted"], strict=True)) == {
        "torch=2.12.0": 1,
        "torch=2.13.0": 3,
    }
