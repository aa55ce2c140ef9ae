"""Rates and times as frameworks print them: per GPU, in tokens, as means of an interval, twice."""

from typing import Any

import pandas as pd
import pytest

from hpc_train.jobs.study import Warmup
from hpc_train.logs.record import Record
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from tests.scaling.studies import foreign, record, study


def row(records: list[Record], warmup: int = 0) -> dict[str, Any]:
    frame = run_frame(study([foreign("a")], warmup=Warmup(steps=warmup)), records)
    return {str(name): frame.at[0, name] for name in frame.columns}


def stepwise(metric: str, values: list[float], **fields: object) -> list[Record]:
    return [record("a", metric, v, step=n, **fields) for n, v in enumerate(values, start=1)]


def test_rate_per_gpu_is_multiplied_by_the_ranks() -> None:
    records = stepwise("tokens_per_second", [50, 100, 100], scope="per_gpu", rank=0)
    assert row([*records, record("a", "world_size", 8)], 1)["tokens_per_second"] == 800


def test_rate_per_gpu_of_many_ranks_is_their_mean_times_their_number() -> None:
    records = [
        record("a", "samples_per_second", 10.0 + rank, scope="per_gpu", rank=rank, step=1)
        for rank in range(4)
    ]
    assert row([*records, record("a", "world_size", 4)])["samples_per_second"] == pytest.approx(46)


def test_one_of_two_programs_that_state_a_metric_is_taken() -> None:
    often = stepwise("step_time", [2.0, 2.0, 2.0], parser="megatron")
    seldom = stepwise("step_time", [9.0, 9.0], parser="deepspeed")
    assert row([*seldom, *often])["step_time_s"] == 2.0


def test_mean_over_an_interval_is_one_value_of_many_steps() -> None:
    records = [
        record("a", "step_time", 9.0, step=10, steps=10),
        record("a", "step_time", 1.0, step=20, steps=10),
        record("a", "step_time", 2.0, step=50, steps=30),
        record("a", "global_batch_size", 70),
    ]
    found = row(records, 1)
    assert (found["steps"], found["step_time_s"]) == (40, 1.5)
    assert found["samples_per_second"] == pytest.approx(70 / 1.5)


def test_speedup_by_tokens_where_nobody_counts_samples() -> None:
    records = [
        record(run, metric, value)
        for run, world, rate in (("a", 1, 100.0), ("b", 4, 350.0))
        for metric, value in (("world_size", world), ("tokens_per_second", rate))
    ]
    expected = study([foreign("a"), foreign("b")])
    points = speedup_frame(run_frame(expected, records), expected)
    assert points["basis"].tolist() == ["token throughput"] * 2
    assert points["speedup"].tolist() == [1.0, pytest.approx(3.5)]


def test_variants_of_a_metric_stay_out() -> None:
    records = stepwise("step_time", [2.0, 2.0])
    records += stepwise("step_time", [9.0, 9.0, 9.0], variant="validation")
    assert row(records)["step_time_s"] == 2.0


@pytest.mark.parametrize("rank", [0, 7])
def test_the_ranks_that_print_are_not_the_number_of_ranks(rank: int) -> None:
    records = [record("a", "step_time", 1, step=s, rank=rank, scope="per_rank") for s in (1, 2, 3)]
    assert row(records)["ranks"] is pd.NA


def test_logs_that_do_not_say_their_size_are_no_repetitions_of_one_another() -> None:
    logs = [foreign("a", 1), foreign("b", 2), foreign("c", 3)]
    records = [record(name, "samples_per_second", 90) for name in "abc"]
    sized = [record("b", "world_size", 4), record("c", "world_size", 4)]
    one_of_two = study(logs)
    points = speedup_frame(run_frame(one_of_two, [*records, *sized]), one_of_two)
    assert sorted(points["n_ok"]) == [1, 2]
    unknown = speedup_frame(run_frame(one_of_two, records), one_of_two)
    assert unknown["n_ok"].tolist() == [1, 1, 1]
