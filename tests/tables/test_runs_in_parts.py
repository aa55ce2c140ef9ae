"""What is computed of the runs part by part is what is computed of all at once."""

from __future__ import annotations

import random

import pandas as pd
import pytest

from hpc_train.errors import ReportError
from hpc_train.model.expected_study import ExpectedRun, ExpectedStudy
from hpc_train.model.record import UNITS, Record
from hpc_train.model.study import Gates, Warmup
from hpc_train.tables import parts_of_runs
from hpc_train.tables.record_arrays import record_arrays
from hpc_train.tables.runs import run_frame

RUNS, STEPS = 23, 15


def record(
    run: int, metric: str, value: float, step: int | None = None, parser: str = "p"
) -> Record:
    return Record(
        run=f"run-{run}", source=f"run-{run}.log", line=(step or 0) + 1, parser=parser,
        metric=metric, value=value, unit=UNITS[metric], scope="global", step=step, rank=None,
        node=None, steps=1, message_size=None, variant="",
    )  # fmt: skip


def records() -> list[Record]:
    """Return those of runs of several programs, sizes and ends; one has none, their lines mixed."""
    chance = random.Random(7)  # noqa: S311  (nothing here is secret)
    found = []
    for run in range(1, RUNS):
        found.append(record(run, "world_size", 2.0 ** (run % 4)))
        for step in range(1, STEPS + run % 3):
            seconds = chance.uniform(1, 2) if run % 7 else float("nan")
            found.append(record(run, "step_time", seconds, step))
            if run % 5 == 0:
                found.append(record(run, "samples_per_second", 8 / seconds, step, "q"))
            found.append(record(run, "loss", 9 - step / 10, step))
    chance.shuffle(found)
    return found


def study() -> ExpectedStudy:
    expected = tuple(
        ExpectedRun(
            run_id=f"run-{run}", axes={}, repetition=run + 1, topology=None, state="COMPLETED",
            problem="", ranks=0,
        )
        for run in range(RUNS)
    )  # fmt: skip
    return ExpectedStudy(
        name="s", runs=expected, baseline={}, scaling=None, warmup=Warmup(), gates=Gates()
    )


def in_parts(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(parts_of_runs, "_RUNS", most)
    monkeypatch.setattr(parts_of_runs, "_RECORDS", 0)


@pytest.mark.parametrize("most", [1, 4, RUNS - 1])
def test_parts_make_the_same_table(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    fields = record_arrays(records())
    whole = run_frame(study(), fields)
    in_parts(monkeypatch, most)
    pd.testing.assert_frame_equal(run_frame(study(), fields), whole, check_exact=True)
    assert {own["parser"] for own in whole["conditions"] if own} == {"p / q"}
    assert whole["state"].nunique() == 2


def test_copies_are_found_across_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    in_parts(monkeypatch, 4)
    one = [entry for entry in records() if entry.run == "run-1"]
    again = [record(20, e.metric, e.value, e.step, e.parser) for e in one]
    others = [entry for entry in records() if entry.run != "run-20"]
    with pytest.raises(ReportError, match="run-1 and run-20 hold the same measurements"):
        run_frame(study(), [*others, *again])


def test_a_run_that_the_study_does_not_list_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    in_parts(monkeypatch, 4)
    stranger = record(RUNS, "step_time", 1.0, 1)
    with pytest.raises(ReportError, match=f"does not list: run-{RUNS}"):
        run_frame(study(), [*records(), stranger])
