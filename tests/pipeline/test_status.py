"""Watching: files are read each time, the scheduler is asked ever more rarely."""

from __future__ import annotations

import os

import msgspec
import pytest

from hpc_train.model.run import Run, RunFolder
from hpc_train.model.submission import JobState
from hpc_train.pipeline.status import Watch
from hpc_train.pipeline.submit import submit
from hpc_train.submissions.local_queue import FOLDER, LocalQueue, take
from hpc_train.submissions.submission_file import mark, write
from tests.pipeline.on_slurm import RESULTS, job, says, study, submission
from tests.submissions.slurm.fake_slurm import FakeSlurm

NOW = 1_000_000.0


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def only(watch: Watch) -> Run:
    (run,) = watch.runs()
    return run


def asked_after(slurm: FakeSlurm, watch: Watch, clock: Clock, seconds: int) -> list[int]:
    """Look on for a while, and return the seconds at which squeue was called."""
    moments = []
    before = len(slurm.calls("squeue"))
    for second in range(seconds):
        clock.now = NOW + second
        watch.runs()
        calls = len(slurm.calls("squeue"))
        moments += [second] * (calls - before)
        before = calls
    return moments


def test_what_was_just_submitted_is_left_in_peace_first(slurm: FakeSlurm, clock: Clock) -> None:
    home = submit(job(), RESULTS, []).home
    watch = Watch(home, just_submitted=True, clock=clock)
    # Each pause is twice as long, and none is longer than the site's interval of 30 s.
    assert asked_after(slurm, watch, clock, 95) == [2, 6, 14, 30, 60, 90]


def test_before_the_first_question_the_files_speak(slurm: FakeSlurm, clock: Clock) -> None:
    (run,) = submit(job(), RESULTS, []).new
    watch = Watch(run.path, just_submitted=True, clock=clock)
    assert only(watch).state is JobState.PENDING
    says(run, started=NOW + 1)
    assert only(watch).state is JobState.RUNNING
    says(run, started=NOW + 1, ended=NOW + 2, exit_code=0)
    assert only(watch).state is JobState.COMPLETED
    assert slurm.calls("squeue") == []


def test_a_failure_counts_when_the_scheduler_has_let_go(slurm: FakeSlurm, clock: Clock) -> None:
    (run,) = submit(job(), RESULTS, []).new
    watch = Watch(run.path, just_submitted=True, clock=clock)
    says(run, started=NOW, ended=NOW + 1, exit_code=9)
    assert only(watch).state is JobState.RUNNING
    slurm.becomes("1001", "FAILED", nodes="n1")
    clock.now += 2
    assert only(watch).state is JobState.FAILED


def test_what_ended_before_stays_as_it_was(slurm: FakeSlurm, clock: Clock) -> None:
    home = submit(study(), RESULTS, []).home
    failed, cancelled, goes_on, waits = sorted(
        (RunFolder(path=path) for path in home.glob("*-r*")), key=lambda run: run.run_id
    )
    says(failed, ended=1001.0, exit_code=3)
    mark(cancelled, submission(cancelled), JobState.CANCELLED, "by you")
    says(goes_on)
    states = {
        run.folder.run_id: run.state for run in Watch(home, just_submitted=True, clock=clock).runs()
    }
    assert states == {
        failed.run_id: JobState.FAILED,
        cancelled.run_id: JobState.CANCELLED,
        goes_on.run_id: JobState.RUNNING,
        waits.run_id: JobState.PENDING,
    }
    assert slurm.calls("squeue") == []


def test_a_run_that_was_never_handed_over_is_unknown(slurm: FakeSlurm, clock: Clock) -> None:
    first, *rest = submit(study(), RESULTS, []).new
    first.submission.unlink()
    found = Watch(first.path.parent, just_submitted=True, clock=clock).runs()
    states = {run.folder.run_id: run.state for run in found}
    expected = dict.fromkeys((run.run_id for run in rest), JobState.PENDING)
    assert states == {**expected, first.run_id: JobState.UNKNOWN}


def test_the_answer_before_counts_until_the_next(slurm: FakeSlurm, clock: Clock) -> None:
    (run,) = submit(job(), RESULTS, []).new
    watch = Watch(run.path, clock=clock)
    slurm.becomes("1001", "RUNNING", nodes="n1")
    assert only(watch).state is JobState.RUNNING
    slurm.becomes("1001", "NODE_FAIL", nodes="n1")
    assert only(watch).state is JobState.RUNNING
    clock.now += 2
    assert only(watch).state is JobState.NODE_FAIL


def test_files_from_before_a_requeue_are_not_believed(slurm: FakeSlurm, clock: Clock) -> None:
    (run,) = submit(job(), RESULTS, []).new
    says(run, started=NOW - 500, ended=NOW - 400, exit_code=1)
    assert only(Watch(run.path, clock=clock)).state is JobState.PENDING


def test_local_runs_are_asked_for_each_time(slurm: FakeSlurm, clock: Clock) -> None:
    (run,) = submit(job(), RESULTS, []).new
    home = run.path.parent
    write(run, msgspec.structs.replace(submission(run), executor="local", native_id="q"))
    watch = Watch(home, just_submitted=True, clock=clock)
    assert only(watch).state is JobState.LOST
    (home / FOLDER).mkdir()
    lock = take(LocalQueue(home=home, queue_id="q").file("lock"), wait=True)
    assert lock is not None
    assert only(watch).state is JobState.PENDING
    os.close(lock)
    assert only(watch).state is JobState.LOST
    assert slurm.calls("squeue") == []


def test_what_is_settled_is_asked_for_no_more(slurm: FakeSlurm, clock: Clock) -> None:
    (run,) = submit(job(), RESULTS, []).new
    watch = Watch(run.path, clock=clock)
    slurm.becomes("1001", "TIMEOUT", nodes="n1")
    assert only(watch).state is JobState.TIMEOUT
    slurm.forgets()
    clock.now += 100
    assert only(watch).state is JobState.TIMEOUT
    assert len(slurm.calls("squeue")) == 1


def test_silence_is_unknown_and_watching_goes_on(slurm: FakeSlurm, clock: Clock) -> None:
    (run,) = submit(job(), RESULTS, []).new
    watch = Watch(run.path, clock=clock)
    slurm.on("squeue", "echo 'Unable to contact slurm controller (connect failure)' >&2; exit 1")
    found = only(watch)
    assert found.state is JobState.UNKNOWN
    assert not found.state.finished
    assert "Unable to contact slurm controller" in found.problem
    slurm.on("squeue", "")
    clock.now += 2
    assert only(watch).state is JobState.PENDING


def test_a_manifest_is_read_once_and_damage_is_still_told(slurm: FakeSlurm, clock: Clock) -> None:
    (run,) = submit(job(), RESULTS, []).new
    watch = Watch(run.path, clock=clock)
    before = only(watch)
    run.manifest.write_text("{")
    says(run, started=NOW + 1)
    found = only(watch)
    assert (found.state, found.problem) == (JobState.RUNNING, "")
    assert found.manifest is before.manifest
    run.status.write_text("{")
    assert "status.json: damaged" in only(watch).problem
