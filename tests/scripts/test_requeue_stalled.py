"""Starts of a job, run by bash, that save no later checkpoint than the one that they loaded."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.scripts.job_starts import Job


def test_starts_without_progress_end_the_job(started: Callable[..., Job]) -> None:
    job = started(max_stalled=2)
    assert job.start(75, step=10)[1]
    assert job.start(75)[1]
    said, again = job.start(75)
    assert not again
    assert "not queued again: 2 starts in a row have no checkpoint after step 10" in said
    assert [row["stalled"] for row in job.rows()] == [0, 1, 2]


def test_progress_sets_the_count_back(started: Callable[..., Job]) -> None:
    job = started(max_stalled=2)
    assert [job.start(75, step=step)[1] for step in (10, 10, 20, 20)] == [True] * 4


def test_what_is_trained_again_after_a_damaged_checkpoint_is_no_progress(
    started: Callable[..., Job],
) -> None:
    """At each start the newest one is damaged: the start loads the one before."""
    job = started(max_stalled=2)
    assert job.start(75, step=100)[1]
    assert job.start(75, LOADED="50 1500.5", step=100)[1]
    said, again = job.start(75, LOADED="50 1500.5", step=100)
    assert not again
    assert "2 starts in a row have no checkpoint after step 100" in said
    assert [row["stalled"] for row in job.rows()] == [0, 1, 2]


def test_progress_is_judged_from_the_checkpoint_that_was_loaded(
    started: Callable[..., Job],
) -> None:
    """An older one had to be loaded: the starts that go on from it get further, step by step."""
    job = started(max_stalled=2)
    job.start(75, step=200)
    for loaded, step in ((10, 14), (14, 18), (18, None), (None, None)):
        job.start(75, LOADED="" if loaded is None else f"{loaded} 1500.5", step=step)
    rows = [(row["loaded"], row["loaded_saved"], row["step"], row["stalled"]) for row in job.rows()]
    assert rows == [
        (None, None, 200, 0),
        (10, 1500.5, 14, 1),
        (14, 1500.5, 18, 0),
        (18, 1500.5, 18, 1),
        (None, None, 18, 2),
    ]


def test_a_later_step_than_any_is_progress_also_after_a_damaged_checkpoint(
    started: Callable[..., Job],
) -> None:
    job = started(max_stalled=1)
    assert job.start(75, step=20)[1]
    assert job.start(75, LOADED="10 1500.5", step=21)[1]
    assert not job.start(75, LOADED="10 1500.5", step=21)[1]


@pytest.mark.parametrize("text", ["", "x y", "7; rm 3"])
def test_a_note_of_another_program_is_ignored(started: Callable[..., Job], text: str) -> None:
    job = started()
    job.start(75, step=20)
    (job.folder / "checkpoints" / "resumed").write_text(text)
    job.start(75, step=30)
    assert [(row["loaded"], row["stalled"]) for row in job.rows()] == [(None, 0)] * 2


def test_a_first_start_without_a_checkpoint_counts_as_one_at_step_0(
    started: Callable[..., Job],
) -> None:
    job = started(max_stalled=1)
    assert [job.start(75)[1], job.start(75)[1]] == [True, False]
