"""The starts of a job that was queued again: a sentence, rows, and JSON."""

import msgspec
import pytest

from hpc_train.runs.run import JobStart
from hpc_train.runs.run_table import restart_rows, restarted

SAVED = JobStart(
    restart=0,
    started=10.0,
    ended=20.0,
    exit_code=75,
    nodes="n1",
    step=40,
    reached=40,
    requeued=True,
    saved=19.5,
)
LOST = JobStart(restart=1, started=140.0, nodes="n2", step=40, reached=54)
DONE = JobStart(restart=2, started=300.0, ended=310.5, exit_code=0, nodes="n3", step=40, reached=60)


@pytest.mark.parametrize(
    ("starts", "text"),
    [
        ((), ""),
        ((SAVED,), "restarted once (checkpoint saved on request), 0 steps lost"),
        (
            (SAVED, LOST, DONE),
            "restarted 2 times (no end recorded: node lost, or script killed), 14 steps lost",
        ),
        ((JobStart(restart=0, started=1.0, ended=2.0, exit_code=0),), ""),
        (
            (msgspec.structs.replace(SAVED, preempted=True),),
            "restarted once (preempted, checkpoint saved on request), 0 steps lost",
        ),
        (
            (JobStart(restart=0, started=1.0, ended=2.0, exit_code=143), DONE),
            "restarted once (exit code 143 (SIGTERM, as Slurm sends it when it preempts or "
            "requeues a job)), steps lost unknown",
        ),
    ],
)
def test_the_sentence(starts: tuple[JobStart, ...], text: str) -> None:
    assert restarted(starts) == text


def test_the_steps_of_a_start_without_events_are_unknown() -> None:
    silent = JobStart(restart=1, started=1.0, ended=2.0, exit_code=143)
    assert restarted((SAVED, silent, DONE)).endswith(", at least 0 steps lost")


def test_a_row_for_each_start() -> None:
    assert restart_rows((SAVED, LOST, DONE)) == [
        ("0", "n1", "10.0 s", "--", "40", "0", "checkpoint saved on request"),
        ("1", "n2", "--", "120.0 s", "40", "14", "no end recorded: node lost, or script killed"),
        ("2", "n3", "10.5 s", "--", "40", "0", "exit code 0"),
    ]


def test_a_checkpoint_that_could_not_be_loaded_is_named() -> None:
    start = msgspec.structs.replace(SAVED, step=20, damaged=40)
    text = "checkpoint saved on request; checkpoint of step 40 not loaded"
    assert restarted([start]) == f"restarted once ({text}), 20 steps lost"
