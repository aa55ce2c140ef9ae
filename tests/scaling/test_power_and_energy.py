"""Operations, power and energy of a run: in one scope, and never a part as the whole."""

import warnings
from collections.abc import Sequence
from typing import Any

import msgspec
import pandas as pd
import pytest

from hpc_train.jobs.job import Topology
from hpc_train.jobs.study import Warmup
from hpc_train.logs.record import Record
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from tests.scaling.studies import expected, record, steps, study


def row(records: Sequence[Record], warmup: int = 0, gpus: int = 1) -> dict[str, Any]:
    frame = run_frame(study([expected("a", gpus=gpus)], warmup=Warmup(steps=warmup)), records)
    return {str(name): frame.at[0, name] for name in frame.columns}


def of_ranks(metric: str, *ranks: Sequence[float]) -> list[Record]:
    return [
        record("a", metric, value, scope="per_rank", rank=rank, step=step)
        for rank, values in enumerate(ranks)
        for step, value in enumerate(values, start=1)
    ]


def of_run(metric: str, *ranks: float) -> list[Record]:
    return [
        record("a", metric, value, scope="per_rank", rank=rank) for rank, value in enumerate(ranks)
    ]


def test_energy_is_of_all_gpus_and_steps() -> None:
    each = [
        record("a", "energy", 100, scope="per_gpu", rank=0, step=10, steps=10),
        record("a", "energy", 50, scope="per_gpu", rank=0, step=20, steps=10),
    ]
    assert row(each, gpus=4)["energy_j"] == 6000
    assert row([*each, record("a", "energy", 7000)], gpus=4)["energy_j"] == 7000


def test_power_of_all_ranks_is_their_sum_over_the_measured_steps() -> None:
    found = row(of_ranks("power", [9, 300, 310], [9, 310, 320]), warmup=1, gpus=2)
    assert found["power_w"] == pytest.approx(620)
    assert pd.isna(found["power_per_rank_w"])
    assert row(of_run("power", 300, 320), gpus=2)["power_w"] == 620


@pytest.mark.parametrize("records", [of_ranks("power", [300, 310]), of_run("power", 305)])
def test_power_of_some_ranks_is_not_that_of_the_job(records: list[Record]) -> None:
    found = row(records, gpus=4)
    assert pd.isna(found["power_w"])
    assert found["power_per_rank_w"] == 305


def test_a_power_of_the_job_is_neither_multiplied_nor_added_to_that_of_gpus() -> None:
    each = record("a", "power", 300, scope="per_gpu", step=1)
    assert row([each], gpus=4)["power_w"] == 1200
    assert row([each, record("a", "power", 1300)], gpus=4)["power_w"] == 1300


def test_energy_of_steps_that_a_rank_did_not_print_is_not_used() -> None:
    found = row(of_ranks("energy", [100, 100]), gpus=2)
    assert pd.isna(found["energy_j"])
    assert pd.isna(found["energy_per_sample_j"])


def test_energy_of_a_sample_is_of_the_measured_steps() -> None:
    timed = steps("a", [[1.0] * 3, [1.0] * 3], samples=8)
    found = row([*timed, *of_ranks("energy", [900, 80, 80], [900, 80, 80])], warmup=1, gpus=2)
    assert found["energy_per_sample_j"] == pytest.approx(10)
    assert found["energy_j"] == 2120


def test_without_energy_of_steps_that_of_the_run_is_over_all_its_samples() -> None:
    stated = [record("a", "samples", 500), record("a", "samples_per_second", 50)]
    found = row([*stated, record("a", "energy", 5000)])
    assert found["energy_per_sample_j"] == 10


def test_energy_of_a_token_is_by_the_length_of_a_sequence_or_by_both_rates() -> None:
    stated = [record("a", "samples", 500), record("a", "energy", 5000)]
    rates = [record("a", "samples_per_second", 50), record("a", "tokens_per_second", 51200)]
    assert row([*stated, *rates])["energy_per_token_j"] == pytest.approx(10 / 1024)
    length = record("a", "sequence_length", 2048)
    assert row([*stated, *rates, length])["energy_per_token_j"] == pytest.approx(10 / 2048)
    assert pd.isna(row([*stated, *rates[:1]])["energy_per_token_j"])


def test_tflops_of_the_job_are_divided_by_its_gpus() -> None:
    assert row([record("a", "tflops", 1600)], gpus=4)["tflops_per_gpu"] == 400
    each = record("a", "tflops", 390, scope="per_gpu")
    assert row([each], gpus=4)["tflops_per_gpu"] == 390


@pytest.mark.parametrize("metric", ["power", "energy"])
@pytest.mark.parametrize("value", [0.0, -5.0, 1e308, float("nan"), float("inf")])
def test_a_counter_without_a_possible_value_is_unknown(metric: str, value: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = row([record("a", metric, value), record("a", "samples_per_second", 5)])
    names = ("power_w", "power_per_rank_w", "energy_j", "energy_per_sample_j")
    assert all(pd.isna(found[name]) for name in names)


def test_a_point_has_the_mean_of_its_runs_and_the_highest_memory() -> None:
    runs = [expected("a"), expected("b")]
    records = [
        record(run, metric, value)
        for run, values in (("a", (1, 300, 10, 40)), ("b", (1, 320, 20, 44)))
        for metric, value in zip(
            ("samples_per_second", "power", "energy", "memory"), values, strict=True
        )
    ]
    points = speedup_frame(run_frame(study(runs), records), study(runs))
    names = ("power_w", "energy_j", "memory_gib")
    assert [points.at[0, name] for name in names] == [310, 15, 44]


def test_energy_that_each_rank_states_at_its_end_is_summed_if_all_do() -> None:
    assert row(of_run("energy", 100, 120), gpus=2)["energy_j"] == 220
    assert pd.isna(row(of_run("energy", 100, 120), gpus=3)["energy_j"])


def test_tflops_of_a_rank_with_several_gpus_are_divided_by_its_gpus() -> None:
    topology = Topology(nodes=1, tasks_per_node=1, gpus_per_node=4, cpus_per_task=1)
    runs = study([msgspec.structs.replace(expected("a"), topology=topology)])
    frame = run_frame(runs, [record("a", "tflops", 1600)])
    assert frame["tflops_per_gpu"].tolist() == [400]
