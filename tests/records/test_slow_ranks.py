from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpc_train.records.slow_ranks import slow_ranks


def log(folder: Path, rank: int, times: list[float], start: str = "", **more: Any) -> None:
    events = [
        {"event": "step", "rank": rank, "step": n, "step_time": 9.0, "compute_time": t, **more}
        for n, t in enumerate(times, start=1)
    ]
    text = "".join(f"@hpct {json.dumps(event)}\n" for event in events)
    with (folder / f"rank-{rank}.out").open("a") as file:
        file.write(start + text)


def test_the_slow_rank_is_named_with_its_node(tmp_path: Path) -> None:
    for rank, seconds in enumerate((0.1, 0.11, 0.32, 0.1)):
        log(tmp_path, rank, [5.0, *[seconds] * 8], node=f"n{rank}.site", loss=1.0)
    (found,) = slow_ranks(tmp_path)
    said = "rank 2 on n2 takes 0.32 s a step, 3.2 times the median of the other ranks"
    assert found.text() == said


@pytest.mark.parametrize("times", [[0.1, 0.14], [0.1], []])
def test_equal_ranks_are_not_named(tmp_path: Path, times: list[float]) -> None:
    for rank, seconds in enumerate(times):
        log(tmp_path, rank, [seconds] * 8)
    assert slow_ranks(tmp_path) == ()


def test_without_compute_times_step_times_are_compared(tmp_path: Path) -> None:
    log(tmp_path, 0, [0.1] * 8)
    log(tmp_path, 1, [0.5] * 8)
    log(tmp_path, 2, [0.5] * 8, compute_time=None, step_time=30.0)
    assert [one.rank for one in slow_ranks(tmp_path)] == [2]


def test_steps_of_an_earlier_start_and_damaged_lines_do_not_count(tmp_path: Path) -> None:
    log(tmp_path, 0, [0.1] * 8)
    log(tmp_path, 1, [0.9] * 8)
    for rank in (0, 1):
        log(tmp_path, rank, [0.1] * 8, start='@hpct {"event\nhpctrain: restart 1\n@hpct 3\n')
    assert slow_ranks(tmp_path) == ()


def test_few_steps_tell_nothing(tmp_path: Path) -> None:
    log(tmp_path, 0, [0.1] * 4)
    log(tmp_path, 1, [0.9] * 4)
    assert slow_ranks(tmp_path) == ()
