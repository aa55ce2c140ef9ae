"""A loss that is NaN is no number, and the run must not look as if its last finite one stood."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpc_train.logs.collect import collect
from hpc_train.runs.nodes import slow_ranks
from hpc_train.scaling.run_flags import LOSS_LOST, Flag
from hpc_train.scaling.runs import run_frame
from tests.scaling.studies import foreign, study

STEPS = {
    "hf_trainer": "{'loss': %s, 'grad_norm': 1.0, 'learning_rate': 0.1, 'epoch': 0.%d}\n",
    "nanogpt": "iter %2$d: loss %1$s, time 100.00ms, mfu 1.00%%\n",
    "events": '@hpct {"v":1,"event":"step","rank":0,"step":%2$d,"step_time":0.1,"loss":%1$s}\n',
}
END = {"hf_trainer": "{'train_runtime': 10.0, 'train_samples_per_second': 100.0}\n"}


def lines(program: str, *losses: str) -> str:
    form = STEPS[program].replace("%1$s", "{loss}").replace("%2$d", "{step}")
    form = form.replace("%s", "{loss}").replace("%d", "{step}").replace("%%", "%")
    said = [form.replace("{loss}", x).replace("{step}", str(n)) for n, x in enumerate(losses, 1)]
    return "".join(said) + END.get(program, "")


def flags(tmp_path: Path, text: str) -> tuple[Flag, ...]:
    (tmp_path / "a.log").write_text(text)
    found = tuple(collect("a.log", [tmp_path / "a.log"]))
    own: tuple[Flag, ...] = run_frame(study([foreign("a.log")]), found)["flags"][0]
    return own


@pytest.mark.parametrize("program", list(STEPS))
def test_a_loss_that_ends_as_nan_is_flagged(program: str, tmp_path: Path) -> None:
    nan = "null" if program == "events" else "nan"
    assert LOSS_LOST in flags(tmp_path, lines(program, "2.1", "1.9", nan))
    assert LOSS_LOST not in flags(tmp_path, lines(program, "2.1", nan, "1.9"))
    assert LOSS_LOST not in flags(tmp_path, lines(program, "2.1", "2.0", "1.9"))


@pytest.mark.parametrize("lost", ["a.log", "b.log"])
def test_of_several_logs_of_a_run_each_may_lose_its_loss(tmp_path: Path, lost: str) -> None:
    logs = [tmp_path / name for name in ("a.log", "b.log")]
    for log in logs:
        log.write_text(lines("nanogpt", "2.1", "nan" if log.name == lost else "1.9"))
    frame = run_frame(study([foreign("r")]), tuple(collect("r", logs)))
    assert LOSS_LOST in frame["flags"][0]


def test_the_loss_of_a_validation_may_be_nan(tmp_path: Path) -> None:
    text = lines("hf_trainer", "2.1") + "{'eval_loss': nan, 'epoch': 0.2}\n"
    assert LOSS_LOST not in flags(tmp_path, text)


def test_what_another_program_calls_null_is_not_lost(tmp_path: Path) -> None:
    text = lines("nanogpt", "2.1") + 'iter 2: config {"loss": null}, time 100.00ms, mfu 1.00%\n'
    assert LOSS_LOST not in flags(tmp_path, text)


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
