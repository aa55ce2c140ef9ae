"""The end of a start that Slurm preempts, run by bash."""

from __future__ import annotations

from collections.abc import Callable

from tests.scripts.job_starts import Job


def test_a_start_that_ends_in_the_grace_time_of_a_preemption_is_followed_by_another(
    started: Callable[..., Job],
) -> None:
    """By the script: Slurm queues only those again that it ends itself."""
    job = started(max_stalled=1, max_restarts=3)
    for _ in range(3):
        said, again = job.start(143, PREEMPTED="2099-01-01T00:00:00")
        assert again
        assert said.endswith(" of at most 3, preempted\n")
    assert not job.start(75, step=1, PREEMPTED="2099-01-01T00:00:00")[1]
    assert [row["preempted"] for row in job.rows()] == [True] * 4


def test_preempted_starts_do_not_count_as_starts_without_progress(
    started: Callable[..., Job],
) -> None:
    job = started(max_stalled=2, max_restarts=9)
    assert job.start(75, step=1)[1]
    for _ in range(3):
        assert job.start(75, PREEMPTED="2099-01-01T00:00:00")[1]
    assert job.start(75)[1]
    assert not job.start(75)[1]
    assert [row["stalled"] for row in job.rows()] == [0, 0, 0, 0, 1, 2]


def test_a_node_whose_clock_is_ahead_is_preempted_too(started: Callable[..., Job]) -> None:
    """Both times are Slurm's: of this machine's clock, the job began long after them."""
    job = started()
    assert job.start(143, PREEMPTED="2026-01-02T03:04:05")[1]
