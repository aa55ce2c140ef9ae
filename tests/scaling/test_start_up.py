"""The start-up of a run: what its warm-up took beyond the usual steps."""

from __future__ import annotations

import pandas as pd
import pytest

from hpc_train.jobs.study import Warmup
from hpc_train.logs.record import Record
from hpc_train.scaling.measurements import Target
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from hpc_train.scaling.time_to_accuracy_by_point import target_rows
from tests.scaling.studies import expected, record, steps, study

TIMES = [9.0, 3.0, *[1.0] * 30]


def startup(*records: Record, warmup: int = 2) -> float:
    frame = run_frame(study([expected("a")], warmup=Warmup(steps=warmup)), records)
    return float(frame["startup_s"].iloc[0])


def test_the_steps_of_the_warm_up_beyond_the_median_step() -> None:
    assert startup(*steps("a", [TIMES])) == pytest.approx(8 + 2)


def test_a_longer_first_step_includes_initialisation() -> None:
    logged = steps("a", [TIMES])
    assert startup(*logged, record("a", "first_step_time", 20)) == pytest.approx(19 + 2)
    assert startup(*logged, record("a", "first_step_time", 5)) == pytest.approx(8 + 2)
    assert startup(*logged, record("a", "first_step_time", 20), warmup=0) == pytest.approx(19)


def test_a_fast_warm_up_is_no_negative_time() -> None:
    assert startup(*steps("a", [[0.5, 0.5, *[1.0] * 30]])) == 0


def test_without_warm_up_and_first_step_it_is_unknown() -> None:
    assert pd.isna(startup(*steps("a", [TIMES]), warmup=0))


def test_time_to_a_target_with_and_without_it() -> None:
    asked = study([expected("a")], warmup=Warmup(steps=2))
    reached = [record("a", "accuracy", 0.95, step=20), record("a", "global_batch_size", 8)]
    records = [*steps("a", [TIMES]), *reached]
    runs = run_frame(asked, records)
    to = Target(metric="accuracy", value=0.9)
    (point,) = target_rows(records, runs, speedup_frame(runs, asked), to)
    assert point["time_to_target_without_startup_s"] == pytest.approx(20)
    assert point["time_to_target_s"] == pytest.approx(30)
    assert point["startup_s"] == pytest.approx(10)


def test_a_time_with_an_unknown_start_up_is_unknown() -> None:
    """Of two runs one did not record its start-up: neither it nor their mean has a time with it."""
    asked = study([expected("a"), expected("b")], warmup=Warmup(steps=2))
    records = [
        *steps("a", [TIMES]),
        record("b", "samples_per_second", 8.0),
        *(record(run, "accuracy", 0.95, step=20) for run in "ab"),
        *(record(run, "global_batch_size", 8) for run in "ab"),
    ]
    runs = run_frame(asked, records)
    to = Target(metric="accuracy", value=0.9)
    (point,) = target_rows(records, runs, speedup_frame(runs, asked), to)
    assert [run["time_to_target_s"] for run in point["runs"]] == [pytest.approx(30), None]
    assert point["time_to_target_s"] is None
    assert point["time_to_target_without_startup_s"] == pytest.approx(20)
