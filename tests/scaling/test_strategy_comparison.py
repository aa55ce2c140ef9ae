"""The comparison of strategies: speedup, loss, and the formulas beside the measured values."""

from typing import Any

import pandas as pd
import pytest

from hpc_train.logs.record import Record
from hpc_train.scaling.comparison import strategy_rows
from hpc_train.scaling.record_arrays import record_arrays

WORK = {"model": "gpt-tiny", "data": "synthetic", "precision": "fp32", "device": "cpu"}


def run(strategy: str, ranks: int, rate: float, **changes: Any) -> dict[str, Any]:
    stated = {"strategy": strategy, "optimizer": "sgd", "parameters": "93696"}
    return {
        "run_id": f"{strategy}-{ranks}", "series": strategy, "state": "COMPLETED", "ranks": ranks,
        "global_batch": 32.0, "step_time_s": 32 / rate, "samples_per_second": rate, "loss": 5.6,
        "mfu": None, "mfu_computed": None, "memory_gib": 0.3, "conditions": {**WORK, **stated},
        **changes,
    }  # fmt: skip


def rows(*runs: dict[str, Any], records: tuple[Record, ...] = ()) -> dict[str, dict[str, Any]]:
    found = strategy_rows(pd.DataFrame(runs), record_arrays(records))
    return {f"{row['strategy']}-{row['ranks']}": row for row in found}


def record(name: str, metric: str, value: float, rank: int) -> Record:
    unit = {"sent_bytes": "B", "state_memory": "GiB", "exposed_communication": "1"}[metric]
    return Record(
        run=name, source="out", line=rank + 1, parser="events", metric=metric, value=value,
        unit=unit, scope="per_rank", rank=rank,
    )  # fmt: skip


def test_the_speedup_is_that_to_single() -> None:
    found = rows(run("single", 1, 100), run("ddp", 2, 150), run("ddp", 1, 90))
    assert found["ddp-2"]["speedup"] == pytest.approx(1.5)
    assert found["ddp-2"]["efficiency"] == pytest.approx(0.75)
    assert found["ddp-1"]["speedup"] == pytest.approx(0.9)
    assert found["single-1"]["loss_difference"] == 0


def test_another_loss_gives_no_speedup() -> None:
    found = rows(run("single", 1, 100), run("ddp", 2, 150, loss=5.61), run("fsdp", 2, 80))
    assert found["ddp-2"]["speedup"] is None
    assert "differs from that of single by 1.8e-03, more than 0.0001" in found["ddp-2"]["reason"]
    assert found["fsdp-2"]["speedup"] == pytest.approx(0.8)


def test_other_work_is_not_compared() -> None:
    found = rows(run("single", 1, 100, global_batch=64.0), run("ddp", 2, 150))
    assert found["ddp-2"]["reason"] == "no run of single with the same work"


def test_measured_and_expected_values_stand_side_by_side() -> None:
    values = [("state_memory", 0.4, 0), ("state_memory", 0.6, 1), ("sent_bytes", 750e3, 0)]
    records = tuple(record("fsdp-2", name, value, rank) for name, value, rank in values)
    row = rows(run("single", 1, 100), run("fsdp", 2, 50), records=records)["fsdp-2"]
    assert row["state_memory"] == pytest.approx(0.5)
    assert row["expected_state_memory"] == pytest.approx(93696 * 12 / 2 / 2**30)
    assert row["sent_bytes"] == 750e3
    assert row["expected_sent_bytes"] == pytest.approx(93696 * 4 * 2)


def test_exposed_communication_is_the_mean_of_the_ranks() -> None:
    records = tuple(
        record("ddp-2", "exposed_communication", value, rank)
        for rank, value in enumerate((0.1, 0.3))
    )
    found = rows(run("single", 1, 100), run("ddp", 2, 150), records=records)
    assert found["ddp-2"]["exposed_communication"] == pytest.approx(0.2)
    assert found["single-1"]["exposed_communication"] is None


def test_one_strategy_or_none_is_no_comparison() -> None:
    other = run("ddp", 4, 200)
    assert rows(run("ddp", 2, 150), other) == {}
    assert rows(run("ddp", 2, 150, conditions={}), other) == {}
