"""Stated values over those of the logs, and logs that contradict them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hpc_train.foreign.classify_inputs import Points, sized
from hpc_train.logs.record import Record, Stated
from hpc_train.runs.expected_runs import ExpectedRun, ExpectedStudy
from tests.scaling.studies import foreign, record, study


def with_stated(
    runs: Sequence[ExpectedRun], records: Sequence[Record] = (), **stated: Stated
) -> tuple[ExpectedStudy, tuple[Record, ...]]:
    """Return the study of runs with the stated values of those that are named."""
    lines = {name: f"p.yaml:{line}" for line, name in enumerate(stated, start=1)}
    points = Points(path=Path("p.yaml"), stated=stated, places=lines, changes={})
    return sized(study(runs), records, points, {run.run_id: [] for run in runs})


def eight(**fields: Any) -> Stated:
    return Stated(sizes={"nodes": 2, "ranks": 8}, **fields)


def batch(run: str, value: float, **fields: Any) -> Record:
    return record(run, "global_batch_size", value, **fields)


def test_runs_with_the_same_stated_values_are_repetitions() -> None:
    runs = [foreign(name, number) for number, name in enumerate("abcd", start=1)]
    found, records = with_stated(runs, a=eight(), b=eight(global_batch=64), c=eight(), d=eight())
    assert [run.repetition for run in found.runs] == [1, 1, 2, 3]
    (found_batch,) = records
    assert (found_batch.run, found_batch.value, found_batch.scope) == ("b", 64, "global")
    assert (found_batch.source, found_batch.line) == ("p.yaml", 2)


@pytest.mark.parametrize(
    ("records", "problem"),
    [
        ([record("a", "world_size", 8), batch("a", 64)], ""),
        ([record("b", "world_size", 4), batch("b", 32)], ""),
        ([record("a", "world_size", 4, variant="tp")], ""),
        ([record("a", "world_size", 4, line=7)], "the log says world_size 4, not 8 (job.out:7)"),
        ([batch("a", 32)], "the log says global_batch_size 32, not 64 (job.out:1)"),
    ],
)
def test_a_log_may_only_say_what_is_stated(records: list[Record], problem: str) -> None:
    found, _ = with_stated([foreign("a"), foreign("b")], records, a=eight(global_batch=64))
    run, other = found.runs
    assert run.problem == (problem and f"{problem}, p.yaml:1 states another number")
    assert run.state == ("UNPARSED" if problem else "COMPLETED")
    assert other.state == "COMPLETED"


@pytest.mark.parametrize(("ranks", "state"), [(8, "COMPLETED"), (9, "UNPARSED")])
def test_a_log_of_more_ranks_than_stated_has_no_result(ranks: int, state: str) -> None:
    (run,) = with_stated([replace(foreign("a"), ranks=ranks)], a=eight())[0].runs
    assert run.state == state
    assert (f"the log names rank {ranks - 1}, so" in run.problem) is (state == "UNPARSED")
