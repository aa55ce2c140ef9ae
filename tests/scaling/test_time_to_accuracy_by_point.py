"""Samples and time to a quality: at the first evaluation that has it, never beyond."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from hpc_train.logs.record import Record
from hpc_train.scaling.measurements import Target
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from hpc_train.scaling.time_to_accuracy_by_point import target_rows
from tests.scaling.studies import expected, record, study

TO = Target(metric="accuracy", value=0.9)


def _run(run: str, batch: int, rate: float, qualities: Sequence[float]) -> list[Record]:
    """A run that is evaluated at each tenth step."""
    found = [
        record(run, "global_batch_size", batch),
        record(run, "samples_per_second", rate),
        record(run, "steps", 10 * len(qualities)),
    ]
    for i, value in enumerate(qualities, start=1):
        found.append(record(run, "accuracy", value, step=10 * i, line=i))
    return found


def _rows(records: Sequence[Record], to: Target = TO, each: int = 1) -> list[dict[str, Any]]:
    runs = [expected(f"{n}-{k}", nodes=n) for n in (1, 2) for k in range(each)]
    asked = study(runs)
    table = run_frame(asked, records)
    frame: pd.DataFrame = speedup_frame(table, asked)
    return target_rows(records, table, frame, to)


def test_a_larger_batch_that_learns_less_from_a_sample() -> None:
    one, two = _rows(
        [*_run("1-0", 32, 100, (0.5, 0.91, 0.95)), *_run("2-0", 64, 200, (0.4, 0.8, 0.9))]
    )
    assert (one["samples_to_target"], two["samples_to_target"]) == (20 * 32, 30 * 64)
    assert (one["time_to_target_s"], two["time_to_target_s"]) == (6.4, 9.6)


def test_one_run_that_did_not_get_there_leaves_the_point_without_a_number() -> None:
    good, bad = (0.5, 0.95, 0.95), (0.5, 0.85, 0.89)
    records = [r for k in range(3) for r in _run(f"1-{k}", 32, 100, good)]
    records += [r for k in range(3) for r in _run(f"2-{k}", 32, 200, bad if k else good)]
    one, two = _rows(records, each=3)
    assert (one["state"], one["n_reached"]) == ("reached", 3)
    assert (two["state"], two["n_reached"]) == ("not reached", 1)
    assert two["samples_to_target"] is None
    assert two["time_to_target_s"] is None


def test_a_validation_counts_more_than_what_is_trained_on() -> None:
    records = _run("1-0", 32, 100, (0.95, 0.95))
    records += [record("1-0", "accuracy", v, step=s, variant="validation", line=50 + s)
                for s, v in ((10, 0.8), (20, 0.93))]  # fmt: skip
    assert _rows(records)[0]["samples_to_target"] == 20 * 32


def test_epochs_are_shares_of_what_the_run_saw() -> None:
    records = _run("1-0", 32, 100, ())
    records += [record("1-0", "samples", 4000)]
    for epoch, value in enumerate((0.5, 0.8, 0.92, 0.93)):
        records += [
            record("1-0", "epoch_time", 10, step=epoch),
            record("1-0", "accuracy", value, step=epoch),
        ]
    one, two = _rows(records)
    assert one["samples_to_target"] == 3000
    assert two["state"] == "not measured"


def test_a_loss_is_reached_from_above_by_the_mean_of_the_ranks() -> None:
    records = _run("1-0", 32, 100, ())
    records += [
        record("1-0", "loss", value, scope="per_rank", step=step, rank=rank)
        for step, values in ((1, (0.9, 0.1)), (2, (0.3, 0.1)), (3, (0.1, 0.1)))
        for rank, value in enumerate(values)
    ]
    one, _ = _rows(records, Target(metric="loss", value=0.2))
    assert one["samples_to_target"] == 2 * 32
