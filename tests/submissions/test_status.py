"""Watching: files are read each time, the scheduler is asked ever more rarely."""

import os
import shutil
from pathlib import Path

import msgspec
import pytest

from hpc_train.base.errors import StoreError, SubmitError
from hpc_train.runs import batch_executor, run_queue
from hpc_train.runs.expected_runs import latest_attempts, missing_runs
from hpc_train.runs.json_files import write_submission
from hpc_train.runs.run import JobState, Run, RunFolder
from hpc_train.runs.run_queue import FOLDER, Queue, take
from hpc_train.runs.run_states import Watch, cancel, runs_below
from hpc_train.submissions.submit import submit
from tests.slurm.fake_slurm import BUSY, FakeSlurm
from tests.submissions.on_slurm import RESULTS, job, says, study, submission
from tests.submissions.runs_of import written

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


def test_each_pause_is_twice_as_long(slurm: FakeSlurm, clock: Clock) -> None:
    home = submit(job(), RESULTS, []).home
    watch = Watch(home, clock=clock)
    # Each pause is twice as long, and none is longer than the site's interval of 30 s.
    assert asked_after(slurm, watch, clock, 95) == [0, 2, 6, 14, 30, 60, 90]


def test_the_answer_before_counts_until_the_next(slurm: FakeSlurm, clock: Clock) -> None:
    (run,) = submit(job(), RESULTS, []).new
    watch = Watch(run.path, clock=clock)
    slurm.becomes("1001", "RUNNING", nodes="n1")
    assert only(watch).state is JobState.RUNNING
    slurm.becomes("1001", "NODE_FAIL", nodes="n1")
    assert only(watch).state is JobState.RUNNING
    clock.now += 2
    assert only(watch).state is JobState.NODE_FAIL


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


def test_what_is_lost_is_asked_for_again(slurm: FakeSlurm) -> None:
    """The accounting may be late, or come back."""
    (run,) = submit(job(), RESULTS, []).new
    slurm.forgets()
    for _ in range(2):
        (found,) = runs_below(run.path)
        assert (found.state, found.problem) == (
            JobState.LOST,
            "Slurm no longer knows it, and it recorded no end",
        )
    assert submission(run).state is None
    assert len(slurm.calls("sacct")) == 2


def test_a_run_of_a_requeued_job_waits_again(slurm: FakeSlurm) -> None:
    (run,) = submit(job(), RESULTS, []).new
    says(run, ended=1001.0, exit_code=143)
    slurm.becomes("1001", "PENDING", reason="BeginTime")
    (found,) = runs_below(run.path)
    assert found.state is JobState.PENDING
    assert found.job_report is not None
    assert found.job_report.reason.startswith("it ran until ")
    assert "; its start time has not been reached" in found.job_report.reason


def test_what_failed_while_slurm_was_asked_says_which_rank(slurm: FakeSlurm) -> None:
    (run,) = submit(job(), RESULTS, []).new
    says(run)
    slurm.becomes("1001", "FAILED", nodes="n2", reason="NonZeroExitCode")
    failure = '{"rank": 3, "host": "n2", "exit_code": 9}'
    end = f'{{"started": 1000.0, "ended": 1001.0, "exit_code": 9, "failure": {failure}}}'
    slurm.on("squeue", f"echo '{end}' >{run.status.absolute()}")
    (found,) = runs_below(run.path)
    assert (found.state, found.problem) == (JobState.FAILED, "rank 3 on n2: exit code 9")


def test_missing_runs_are_named(slurm: FakeSlurm) -> None:
    done = submit(study(), RESULTS, [])
    gone = done.new[0]
    slurm.forgets()
    shutil.rmtree(gone.path)
    assert missing_runs(done.home, runs_below(done.home)) == (gone.run_id,)
    assert sorted(missing_runs(done.home, ())) == sorted(run.run_id for run in done.new)
    assert missing_runs(submit(job(), RESULTS, []).home, ()) == ()


def test_the_last_attempt_is_the_one_with_the_largest_number(slurm: FakeSlurm) -> None:
    (run,) = submit(job(), RESULTS, []).new
    for name in ("p-r1", "p-r1.2", "p-r1.10", "p-r2"):
        copy = RunFolder(path=run.path.with_name(name))
        copy.logs.mkdir(parents=True)
        copy.manifest.write_bytes(run.manifest.read_bytes())
    latest = latest_attempts(runs_below(run.path.parent))
    found = {key: run.folder.run_id for key, run in latest.items()}
    assert found == {"p-r1": "p-r1.10", "p-r2": "p-r2"}


def test_a_damaged_list_of_the_study_hides_no_run(
    slurm: FakeSlurm, caplog: pytest.LogCaptureFixture
) -> None:
    done = submit(study(), RESULTS, [])
    (done.home / "study.json").write_text("{")
    assert missing_runs(done.home, runs_below(done.home)) == ()
    assert "study.json: damaged" in caplog.text
    assert "so missing runs are unknown" in caplog.text


def test_cancel_ends_what_waits_and_leaves_what_ended(slurm: FakeSlurm) -> None:
    home = submit(study(), RESULTS, []).home
    slurm.becomes("1001_1", "FAILED", nodes="n1", reason="NonZeroExitCode")
    assert len(cancel(home).runs) == 3
    assert slurm.calls("scancel") == [["1001_2", "1002_1", "1002_2"]]
    states = sorted(found.state.value for found in runs_below(home))
    assert states == ["CANCELLED", "CANCELLED", "CANCELLED", "FAILED"]
    with pytest.raises(StoreError, match="nothing to cancel; 4 runs are CANCELLED, FAILED"):
        cancel(home)


def test_one_element_of_an_array_is_cancelled_alone(slurm: FakeSlurm) -> None:
    done = submit(study(), RESULTS, [])
    assert len(cancel(done.new[0].path).runs) == 1
    assert slurm.calls("scancel") == [[submission(done.new[0]).native_id]]


def test_one_run_of_a_shared_allocation_is_not_cancelled_alone(slurm: FakeSlurm) -> None:
    done = submit(study("placement=nested", "time=1m"), RESULTS, [])
    with pytest.raises(StoreError, match="it shares its allocation with the other runs") as failure:
        cancel(done.new[0].path)
    assert failure.value.hint == "hpctrain cancel s ends them all"
    assert slurm.calls("scancel") == []
    assert len(cancel(done.home).runs) == 4
    assert slurm.calls("scancel") == [["1001"]]


def test_what_nobody_can_say_is_returned_and_not_cancelled(slurm: FakeSlurm) -> None:
    first, *rest = submit(study(), RESULTS, []).new
    first.submission.write_text("{")
    done = cancel(first.path.parent)
    assert [run.folder for run in done.unknown_jobs] == [first]
    assert {run.folder for run in done.runs} == set(rest)
    assert slurm.calls("scancel") == [sorted(submission(run).native_id for run in rest)]


def test_silence_does_not_say_that_a_job_has_ended(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_executor, "_MAX_QUERIES", 1)
    (run,) = submit(job(), RESULTS, []).new
    slurm.on("squeue", f"echo '{BUSY}' >&2; exit 1")
    with pytest.raises(SubmitError, match=r"scancel: 1001: Slurm does not answer: .*timed out"):
        cancel(run.path)
    assert submission(run).state is None


def test_a_job_that_stays_in_the_queue_is_not_called_cancelled(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_executor, "_MAX_QUERIES", 1)
    (run,) = submit(job(), RESULTS, []).new
    slurm.on("scancel", "exit 0")
    with pytest.raises(SubmitError, match="scancel: 1001: still in the queue"):
        cancel(run.path)
    assert submission(run).state is None


def test_a_local_run_whose_queue_this_user_may_not_read_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = written(tmp_path / "j", "j-n1-r1", "").folder
    run.status.unlink()
    monkeypatch.setattr(run_queue, "is_held", lambda path: None)
    with pytest.raises(StoreError, match="nothing to cancel; 1 run is UNKNOWN") as failure:
        cancel(run.path)
    assert failure.value.hint == "its queue cannot be read"
    assert submission(run).state is None


def test_local_runs_are_asked_for_each_time(slurm: FakeSlurm, clock: Clock) -> None:
    (run,) = submit(job(), RESULTS, []).new
    home = run.path.parent
    write_submission(run, msgspec.structs.replace(submission(run), executor="local", native_id="q"))
    watch = Watch(home, clock=clock)
    assert only(watch).state is JobState.LOST
    (home / FOLDER).mkdir()
    lock = take(Queue(home=home, queue_id="q").file("lock"))
    assert lock is not None
    assert only(watch).state is JobState.PENDING
    os.close(lock)
    assert only(watch).state is JobState.LOST
    assert slurm.calls("squeue") == []


def test_whoever_may_only_read_gets_an_answer(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StoreError("submission.json: Read-only file system")

    (run,) = submit(job(), RESULTS, []).new
    slurm.becomes("1001", "TIMEOUT", nodes="n1")
    monkeypatch.setattr("hpc_train.runs.run_states.write_submission", refuse)
    (found,) = runs_below(run.path)
    assert found.state is JobState.TIMEOUT
