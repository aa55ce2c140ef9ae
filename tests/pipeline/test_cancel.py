"""What is ended, what is left alone, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.errors import StoreError, SubmitError
from hpc_train.pipeline.cancel import cancel
from hpc_train.pipeline.run_states import runs_below
from hpc_train.pipeline.submit import submit
from hpc_train.submissions import local_executor
from hpc_train.submissions.slurm import executor
from tests.pipeline.on_slurm import RESULTS, job, study, submission
from tests.pipeline.runs_of import written
from tests.submissions.slurm.fake_slurm import BUSY, FakeSlurm


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
    monkeypatch.setattr(executor, "_MAX_QUERIES", 1)
    (run,) = submit(job(), RESULTS, []).new
    slurm.on("squeue", f"echo '{BUSY}' >&2; exit 1")
    with pytest.raises(SubmitError, match=r"scancel: 1001: Slurm does not answer: .*timed out"):
        cancel(run.path)
    assert submission(run).state is None


def test_a_job_that_stays_in_the_queue_is_not_called_cancelled(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "_MAX_QUERIES", 1)
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
    monkeypatch.setattr(local_executor, "is_held", lambda path: None)
    with pytest.raises(StoreError, match="nothing to cancel; 1 run is UNKNOWN") as failure:
        cancel(run.path)
    assert failure.value.hint == "its queue cannot be read"
    assert submission(run).state is None
