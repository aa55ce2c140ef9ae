from __future__ import annotations

import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpc_train.model.expected_study import ExpectedRun
from hpc_train.model.plan import Topology
from hpc_train.model.quality_flag import FlagCode
from hpc_train.model.record import Record
from hpc_train.tables.runs import run_frame
from hpc_train.tables.speedup import speedup_frame
from tests.tables.studies import expected, rate, record, study

NODES = (1, 2, 4, 8, 16, 32)
# NVIDIA DeepLearningExamples@729963d, PyTorch/LanguageModeling/BERT: sequences/s on DGX A100.
BERT = {
    "fp16 s128": ((4553, 9191, 18119, 35774, 70555, 138294), (1, 2.02, 3.98, 7.86, 15.50, 30.37)),
    "tf32 s128": ((2486, 4979, 9859, 19815, 38866, 75706), (1, 2.00, 3.97, 7.97, 15.63, 30.45)),
    "fp16 s512": ((1648, 3291, 6464, 13005, 25570, 49663), (1, 2.00, 3.92, 7.89, 15.51, 30.13)),
    "tf32 s512": ((854, 1684, 3293, 6515, 12131, 21298), (1, 1.97, 3.86, 7.63, 14.21, 24.95)),
}
# Oneflow-Inc/DLPerf@c89430b, ResNet-50 fp32: (nodes, GPUs per node), images/s, speedup.
DLPERF = (
    ((1, 1), 367.29, 1.00),
    ((1, 4), 1449.48, 3.95),
    ((1, 8), 2887.65, 7.86),
    ((2, 8), 5716.79, 15.56),
    ((4, 8), 10917.09, 29.72),
)


def points(runs: list[ExpectedRun], records: list[Record], **fields: object) -> pd.DataFrame:
    asked = study(runs, **fields)  # type: ignore[arg-type]
    return speedup_frame(run_frame(asked, records), asked)


def repeated(values: dict[int, list[float]], **fields: object) -> pd.DataFrame:
    """Runs at `nodes: [throughput of each repetition]`."""
    named = {(n, i): x for n, xs in values.items() for i, x in enumerate(xs)}
    runs = [expected(f"n{n}-{i}", nodes=n) for n, i in named]
    return points(runs, [r for (n, i), x in named.items() for r in rate(f"n{n}-{i}", x)], **fields)


def test_bert_gives_the_24_published_speedups() -> None:
    runs, records = [], []
    for series, (rates, _) in BERT.items():
        for nodes, value in zip(NODES, rates, strict=True):
            axes = {"nodes": nodes, "case": series}
            runs.append(expected(f"{series}-{nodes}", nodes=nodes, gpus=8, axes=axes))
            records += rate(f"{series}-{nodes}", value, 65536)
    frame = points(runs, records, scaling="strong")
    assert len(frame) == 24
    for series, (_, speedups) in BERT.items():
        own = frame[frame["series"] == f"case={series}"]
        # The source divided rates that it had not yet rounded.
        assert own["speedup"].tolist() == pytest.approx(speedups, abs=0.0151)
    assert frame["speedup_low"].isna().all()


def test_dlperf_and_its_node_boundary() -> None:
    runs = [expected(f"{n}x{g}", nodes=n, gpus=g) for (n, g), _, _ in DLPERF]
    records = [r for (n, g), x, _ in DLPERF for r in rate(f"{n}x{g}", x, 128 * n * g)]
    frame = points(runs, records, scaling="weak")
    assert frame["speedup"].tolist() == pytest.approx([s for *_, s in DLPERF], abs=0.0051)
    assert frame["ideal"].tolist() == [1, 4, 8, 16, 32]
    assert set(frame["regime"]) == {"weak"}


@pytest.mark.parametrize(("precision", "published"), [("none", 14.88), ("1", 15.35)])
def test_ddp_against_two_baselines(precision: str, published: float) -> None:
    # pytorch@bf69c14 benchmarks/distributed/ddp/README.md: images/s of ResNet-50, p50.
    runs = [
        expected("single", axes={"nodes": 1, "ddp": "none"}),
        expected("ddp-1", axes={"nodes": 1, "ddp": "1"}),
        expected("ddp-16", nodes=2, gpus=8, axes={"nodes": 2, "ddp": "1"}),
    ]
    records = rate("single", 329) + rate("ddp-1", 319) + rate("ddp-16", 16 * 306)
    frame = points(runs, records, baseline={"nodes": 1, "ddp": precision})
    last = frame[frame["ranks"] == 16].iloc[0]
    assert last["speedup"] == pytest.approx(published, abs=0.0051)
    assert frame["is_baseline"].sum() == 1


def test_four_gpus_on_one_node_and_on_two_are_different_points() -> None:
    runs = [expected("1x4", gpus=4), expected("2x2", nodes=2, gpus=2)]
    frame = points(runs, rate("1x4", 10) + rate("2x2", 11))
    assert frame[["nodes", "gpus_per_node"]].to_numpy().tolist() == [[1, 4], [2, 2]]


@settings(deadline=None, max_examples=10)
@given(
    st.lists(st.floats(50, 150), min_size=2, max_size=4),
    st.lists(st.floats(50, 150), min_size=2, max_size=4),
)
def test_the_baseline_is_one_and_efficiency_is_speedup_over_ideal(
    first: list[float], second: list[float]
) -> None:
    base, other = repeated({1: first, 4: second}).to_dict("records")
    assert (base["speedup"], base["efficiency"]) == (1.0, 1.0)
    assert pd.isna(base["speedup_low"])
    for limit in ("", "_low", "_high"):
        shown = pytest.approx(other[f"speedup{limit}"] / 4, nan_ok=True)
        assert other[f"efficiency{limit}"] == shown


def test_without_a_baseline_there_is_no_speedup_but_a_reason() -> None:
    runs = [expected("a", state="FAILED"), expected("b", nodes=2)]
    frame = points(runs, rate("b", 10))
    assert frame["speedup"].isna().all()
    assert frame["samples_per_second"].tolist()[1] == 10
    assert "no ok run (1 FAILED: a)" in frame["note"].tolist()[1]
    assert frame["not_ok"].tolist() == ["1 FAILED", ""]


def test_mixed_batches_give_no_speedup() -> None:
    runs = [expected("a"), expected("b", nodes=2), expected("c", nodes=4)]
    frame = points(runs, rate("a", 1, 8) + rate("b", 2, 16) + rate("c", 3, 16))
    assert set(frame["regime"]) == {"mixed"}
    assert frame["speedup"].isna().all()


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({1: [10.0, 10.1], 2: [19.0]}, "n=1"),
        ({1: [10.0, 10.1], 2: [25.0, 25.1]}, "superlinear"),
        ({1: [10.0, 10.1], 2: [14.0, 14.1]}, "gate"),
    ],
)
def test_doubtful_points_are_flagged(values: dict[int, list[float]], code: str) -> None:
    frame = repeated(values, efficiency=0.75)
    assert [flag.code.value for flag in frame["flags"].tolist()[1]] == [code]


def test_a_sound_point_has_no_flag() -> None:
    assert repeated({1: [10.0, 10.1], 2: [19.0, 19.1]}, efficiency=0.75).at[1, "flags"] == ()


def test_accuracy_is_compared_with_its_own_noise() -> None:
    runs = [expected(f"{n}-{i}", nodes=n) for n in (1, 2) for i in (0, 1)]
    accuracies = {"1-0": 0.70, "1-1": 0.71, "2-0": 0.65, "2-1": 0.66}
    records = [r for run in runs for r in rate(run.run_id, 10)]
    records += [record(name, "accuracy", value) for name, value in accuracies.items()]
    frame = points(runs, records)
    assert frame.at[1, "accuracy_change_pp"] == pytest.approx(-5)
    # t of 2 degrees of freedom is 4.303, the standard error 0.707 points.
    flag = "accuracy: -5.00 points, noise explains 3.04"
    assert flag in map(str, frame["flags"].tolist()[1])


def test_repetitions_of_one_seed_do_not_measure_the_noise_of_accuracy() -> None:
    runs = [expected(f"{n}-{i}", nodes=n) for n in (1, 2) for i in (0, 1, 2)]
    records = [r for run in runs for r in rate(run.run_id, 10)]
    records += [record(r.run_id, "accuracy", 0.9361 + 0.0028 * (r.run_id[0] == "2")) for r in runs]
    frame = points(runs, records)
    assert frame.at[1, "accuracy_change_pp"] == pytest.approx(0.28)
    assert not any(flag.code == FlagCode.ACCURACY for flag in frame["flags"].tolist()[1])


def test_whole_seconds_bound_the_speedup() -> None:
    runs = [expected("a"), expected("b", nodes=8)]
    records = [record("a", "epoch_time", 39, parser="book", step=1)]
    records += [record("b", "epoch_time", 6, parser="book", step=1)]
    frame = points(runs, records)
    assert set(frame["basis"]) == {"epoch time"}
    assert frame.at[1, "speedup"] == pytest.approx(6.5)
    flags = map(str, frame["flags"].tolist()[1])
    assert "whole seconds: true speedup between 5.57 and 6.67" in flags


def test_a_series_has_one_basis() -> None:
    runs = [expected("a"), expected("b", nodes=2)]
    times = [record("a", "epoch_time", 8, step=1), record("b", "epoch_time", 4, step=1)]
    frame = points(runs, [*times, *rate("a", 100)])
    assert set(frame["basis"]) == {"epoch time"}
    assert frame.at[1, "speedup"] == pytest.approx(2.0)


def of_ranks(run_id: str, nodes: int, gpus: int, ranks: int) -> ExpectedRun:
    topology = Topology(nodes=nodes, tasks_per_node=ranks, gpus_per_node=gpus, cpus_per_task=1)
    return msgspec.structs.replace(expected(run_id, nodes=nodes), topology=topology)


@pytest.mark.parametrize(
    ("gpus", "ranks", "ideal"), [((1, 4), (1, 2), 8), ((0, 0), (2, 6), 6), ((4, 2), (1, 1), 1)]
)
def test_the_ideal_is_the_ratio_of_gpus_else_of_ranks(
    gpus: tuple[int, int], ranks: tuple[int, int], ideal: float
) -> None:
    runs = [of_ranks("a", 1, gpus[0], ranks[0]), of_ranks("b", 2, gpus[1], ranks[1])]
    frame = points(runs, rate("a", 10) + rate("b", 30), baseline={"nodes": 1})
    assert frame.set_index("nodes").at[2, "ideal"] == ideal


def test_one_comparison_needs_no_simultaneous_level() -> None:
    runs = [expected(f"{n}-{i}", nodes=n) for n in (1, 2) for i in (0, 1, 2)]
    records = [r for run in runs for r in rate(run.run_id, 10 + int(run.run_id[2:]) / 10)]
    asked = study(runs)
    frame = run_frame(asked, records)
    one, both = (
        speedup_frame(frame, msgspec.structs.replace(asked, bands=bands))
        for bands in ("pointwise", "simultaneous")
    )
    assert one["speedup_low"].notna().tolist() == [False, True]
    np.testing.assert_allclose(both["speedup_low"], one["speedup_low"])


def test_a_point_with_only_a_time_to_train_is_no_baseline_of_throughputs() -> None:
    runs = [expected(f"r{nodes}", nodes=nodes) for nodes in (1, 2, 4)]
    times = [record("r1", "time_to_train", 100), record("r2", "time_to_train", 50)]
    frame = speedup_frame(
        run_frame(study(runs), [*times, *rate("r2", 20), *rate("r4", 40)]), study(runs)
    )
    assert frame["speedup"].isna().all()
    assert not frame["is_baseline"].any()
    assert frame["time_to_train_speedup"].tolist()[:2] == [1, pytest.approx(2)]
