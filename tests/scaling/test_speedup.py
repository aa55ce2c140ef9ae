import msgspec
import pandas as pd
import pytest

from hpc_train.jobs.job import Topology
from hpc_train.logs.record import Record
from hpc_train.runs.expected_runs import ExpectedRun
from hpc_train.scaling.measurements import FlagCode
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from hpc_train.scaling.split_series import separated
from tests.scaling.studies import expected, rate, record, study


def points(runs: list[ExpectedRun], records: list[Record], **fields: object) -> pd.DataFrame:
    asked = study(runs, **fields)  # type: ignore[arg-type]
    return speedup_frame(run_frame(asked, records), asked)


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


@pytest.mark.parametrize("missing", [(), ("c",)])
def test_of_mixed_batches_the_times_to_train_are_compared(missing: tuple[str, ...]) -> None:
    runs = [expected("a"), expected("b", nodes=2), expected("c", nodes=4)]
    records = rate("a", 1, 8) + rate("b", 2, 16) + rate("c", 3, 16)
    times = {"a": 100.0, "b": 60.0, "c": 40.0}
    records += [record(n, "time_to_train", t) for n, t in times.items() if n not in missing]
    frame = points(runs, records)
    assert set(frame["regime"]) == {"mixed"}
    if missing:
        assert frame["speedup"].isna().all()
        return
    assert frame["speedup"].tolist() == pytest.approx([1, 100 / 60, 2.5])
    assert frame["assumption"].tolist()[0] == (
        "by the time to train, as batch and size change together, assuming the same training at "
        "every size"
    )
    assert frame[["doubling", "karp_flatt"]].isna().all(axis=None)


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


def test_a_point_with_only_a_time_to_train_is_no_baseline_of_throughputs() -> None:
    runs = [expected(f"r{nodes}", nodes=nodes) for nodes in (1, 2, 4)]
    times = [record("r1", "time_to_train", 100), record("r2", "time_to_train", 50)]
    frame = speedup_frame(
        run_frame(study(runs), [*times, *rate("r2", 20), *rate("r4", 40)]), study(runs)
    )
    assert frame["speedup"].isna().all()
    assert not frame["is_baseline"].any()


def test_a_time_is_never_divided_by_a_rate() -> None:
    axes = ({"launcher": "srun"}, {"launcher": "srun"}, {"launcher": "mpirun"})
    names = ("a", "b", "c")
    runs = [
        msgspec.structs.replace(expected(name, nodes=nodes), axes=own)
        for name, nodes, own in zip(names, (1, 2, 2), axes, strict=True)
    ]
    records = [*rate("a", 100), *rate("b", 180), record("c", "epoch_time", 4, step=1)]
    frame = points(runs, records, baseline={"launcher": "srun"})
    by_rate, by_time = frame[frame["basis"] == "throughput"], frame[frame["basis"] == "epoch time"]
    assert by_rate["speedup"].tolist() == [1, pytest.approx(1.8)]
    assert by_time["speedup"].isna().all()
    assert "the baseline states no epoch time (a)" in by_time["note"].tolist()[0]


def test_runs_of_one_size_with_other_tokens_a_step_are_not_averaged() -> None:
    runs = [expected(name, nodes=nodes) for name, nodes in (("a", 1), ("b", 1), ("c", 2))]
    records = [
        one
        for name, tokens, seconds in (("a", 2048, 1.0), ("b", 4096, 2.0), ("c", 2048, 0.6))
        for one in (
            record(name, "tokens_per_step", tokens),
            *(record(name, "step_time", seconds, step=step) for step in (1, 2, 3)),
        )
    ]
    asked = study(runs)
    frame = speedup_frame(separated(run_frame(asked, records), asked).runs, asked)
    rates = dict(zip(frame["series"], frame["tokens_per_second"], strict=False))
    assert len(rates) == 2
    small = frame[frame["series"] == "global_batch=2048"]
    assert small["speedup"].tolist() == [1, pytest.approx(1 / 0.6)]
