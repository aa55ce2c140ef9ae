"""What stands beside the speed of a run: quantiles, memory, shares of time, conditions."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import pandas as pd
import pytest

from hpc_train.errors import ReportError
from hpc_train.model.expected_study import EXCLUDED, ExpectedRun
from hpc_train.model.quality_flag import Flag, FlagCode
from hpc_train.model.record import Record, packs_of
from hpc_train.model.study import Warmup
from hpc_train.tables.parquet import records_frame
from hpc_train.tables.runs import COLUMNS, run_frame
from tests.tables.studies import expected, foreign, rate, record, steps, study


def row(records: list[Record], warmup: int = 0, gpus: int = 1) -> dict[str, Any]:
    frame = run_frame(study([expected("a", gpus=gpus)], warmup=Warmup(steps=warmup)), records)
    return {str(name): frame.at[0, name] for name in frame.columns}


def phase(name: str, value: float, **fields: Any) -> Record:
    return record("a", "phase_time", value, variant=name, **{"step": 1, **fields})


def with_(run: ExpectedRun, **changes: Any) -> ExpectedRun:
    return msgspec.structs.replace(run, **changes)


def test_quantiles_are_of_the_measured_steps_of_the_slowest_rank() -> None:
    times = [9.0, *(float(n) for n in range(1, 22))]
    found = row(steps("a", [times, [0.5] * 22]), warmup=1, gpus=2)
    names = ("step_p05_s", "step_p25_s", "step_time_s", "step_p75_s", "step_p95_s")
    assert [found[name] for name in names] == pytest.approx([2, 6, 11, 16, 20])


def test_mean_step_time_counts_an_interval_for_all_its_steps() -> None:
    records = [
        record("a", "step_time", 1.0, step=10, steps=10),
        record("a", "step_time", 4.0, step=15, steps=5),
    ]
    assert row(records)["step_time_mean_s"] == 2.0


def test_steps_that_are_not_positive_have_no_quantiles() -> None:
    found = row(steps("a", [[0.0] * 5]))
    assert all(pd.isna(found[name]) for name in ("step_p05_s", "step_time_mean_s", "step_time_s"))


def test_use_of_the_gpu_is_the_median_of_the_measured_steps() -> None:
    records = [
        record("a", "mfu", value, scope="per_gpu", step=step, rank=rank)
        for step, values in enumerate([(0.01, 0.01), (0.4, 0.5), (0.3, 0.4)], start=1)
        for rank, value in enumerate(values)
    ]
    assert row(records, warmup=1)["mfu"] == pytest.approx(0.4)


def test_memory_is_the_peak_of_all_ranks() -> None:
    records = [
        record("a", "memory", value, scope="per_rank", rank=rank, step=1, variant=variant)
        for rank, value, variant in (
            (0, 30, "max_allocated"),
            (0, 40, "max_reserved"),
            (1, 20, ""),
            (1, 90, "of_host"),
        )
    ]
    assert row(records)["memory_gib"] == 40


def test_learning_rate_is_the_highest_of_the_schedule() -> None:
    rates = [record("a", "learning_rate", v, step=n) for n, v in enumerate((0.0, 0.1, 0.0))]
    assert row(rates)["learning_rate"] == 0.1


def test_steps_and_samples_are_those_stated_else_those_of_the_last_step() -> None:
    logged = [*steps("a", [[1.0] * 30], samples=4), record("a", "global_batch_size", 4)]
    assert row(logged)["optimiser_steps"] == 30
    assert row(logged)["samples_seen"] == 120
    said = [*logged, record("a", "steps", 31), record("a", "samples", 122)]
    assert row(said)["optimiser_steps"] == 31
    assert row(said)["samples_seen"] == 122
    of_one_rank = record("a", "samples", 61, scope="per_rank", rank=0)
    assert row([*logged, of_one_rank])["samples_seen"] == 120


def test_examples_of_the_data_set_are_no_samples_seen() -> None:
    assert pd.isna(row([*rate("a", 10), record("a", "examples", 50000)])["samples_seen"])


def test_shares_of_time_take_the_largest_timer_because_timers_contain_one_another() -> None:
    records = [
        *steps("a", [[2.0], [2.0]]),
        phase("grads-all-reduce", 0.5, scope="per_rank", rank=0),
        phase("grads-all-reduce", 0.7, scope="per_rank", rank=1),
        phase("embedding-grads-all-reduce max", 0.2),
        phase("batch-generator max", 0.1),
        phase("batch-generator min", 0.01),
        phase("train/valid/test-data-iterators-setup", 1.5),
    ]
    found = row(records, gpus=2)
    assert found["communication_share"] == pytest.approx(0.3)
    assert found["data_share"] == pytest.approx(0.05)


def test_a_timer_longer_than_the_step_is_no_share() -> None:
    assert pd.isna(row([*steps("a", [[1.0]]), phase("all-gather", 1.5)])["communication_share"])


def test_conditions_are_those_recorded_and_over_them_those_that_the_log_says() -> None:
    run = with_(expected("a"), conditions={"torch": "2.4", "partition": "gpu"})
    said = [
        record("a", "condition", 1, variant=variant, rank=rank)
        for rank, variant in ((0, "torch=2.5"), (1, "torch=2.5"), (0, "nccl=2.21"), (1, "nccl=a=b"))
    ]
    frame = run_frame(study([run, expected("b")]), said)
    assert frame.at[0, "conditions"] == {
        "torch": "2.5", "partition": "gpu", "nccl": "2.21 / a=b"
    }  # fmt: skip
    assert frame.at[1, "conditions"] == {}
    assert run.conditions["torch"] == "2.4"


def test_restarts_and_wall_time_come_from_the_expected_run() -> None:
    run = with_(expected("a"), restarts=2, wall_s=61.5)
    once = run_frame(study([with_(run, restarts=1)]), steps("a", [[1.0] * 40]))
    assert once.at[0, "flags"] == (Flag(FlagCode.REQUEUED, "restarted once"),)
    frame = run_frame(study([run, expected("b")]), rate("a", 10))
    assert (frame.at[0, "restarts"], frame.at[0, "wall_s"]) == (2, 61.5)
    assert frame.at[0, "flags"] == (Flag(FlagCode.REQUEUED, "restarted 2 times"),)
    assert frame["wall_s"].isna().tolist() == [False, True]


def test_an_excluded_run_keeps_its_measurements_and_its_reason() -> None:
    run = with_(expected("a"), state=EXCLUDED, problem="node 7 was throttled")
    frame = run_frame(study([run]), rate("a", 10))
    assert frame.at[0, "samples_per_second"] == 10
    assert (frame.at[0, "state"], frame.at[0, "problem"]) == (EXCLUDED, "node 7 was throttled")


def test_sizes_that_a_person_states_are_taken_and_checked() -> None:
    runs = [
        with_(foreign("a"), sizes={"nodes": 2, "gpus_per_node": 4, "tasks_per_node": 4}),
        with_(foreign("b", 2), sizes={"nodes": 4, "ranks": 16}),
    ]
    frame = run_frame(study(runs), [*rate("a", 10), *rate("b", 10), record("b", "world_size", 8)])
    assert frame["nodes"].tolist() == [2, 4]
    assert frame["ranks"].tolist() == [8, 16]
    assert frame["series"].tolist() == ["all", "all"]
    assert frame.at[0, "state"] == "COMPLETED"
    assert frame.at[1, "problem"] == "the log says world_size 8, stated 16"


def test_a_frame_without_a_column_is_refused() -> None:
    with pytest.raises(ReportError, match="have no column steps; they need run, source"):
        run_frame(
            study([expected("a")]), records_frame(packs_of(rate("a", 1))).drop(columns="steps")
        )


def test_a_frame_of_records_gives_the_same_table_whatever_its_types() -> None:
    runs = [expected("b", gpus=2), expected("a")]
    records = [
        *steps("b", [[1.0, 2.0] * 10, [3.0, 1.0] * 10]),
        record("b", "condition", 1, variant="torch=2.5"),
        *rate("a", float("nan"), batch=8),
        record("a", "loss", 1, scope="per_rank"),
    ]
    own = records_frame(packs_of(records))
    texts = ["run", "source", "parser", "metric", "unit", "scope", "node", "variant"]
    wanted = run_frame(study(runs), records)
    assert list(wanted.columns) == [*COLUMNS[:2], "axis.nodes", *COLUMNS[2:]]
    csv = pd.read_csv(io.StringIO(own.to_csv(index=False)))
    for given in (own, own.astype(dict.fromkeys(texts, "category")), csv):
        pd.testing.assert_frame_equal(run_frame(study(runs), given), wanted)
