"""How runs stand: one question for all of them, and an end is learned once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from hpc_train import slow_answer
from hpc_train.model.run import RunFolder
from hpc_train.model.submission import JobState
from hpc_train.pipeline.run_states import runs_below
from hpc_train.pipeline.submit import submit
from hpc_train.runs.expected_runs import latest_attempts, missing_runs
from hpc_train.submissions.slurm.squeue import FIELD, RECORD
from hpc_train.submissions.submission_file import write
from hpc_train.subprocesses import run as call
from tests.pipeline.on_slurm import RESULTS, job, says, study, submission
from tests.submissions.slurm.fake_slurm import BUSY, FakeSlurm, option


def copies(run: RunFolder, count: int) -> list[RunFolder]:
    """Make many runs of one, elements of an array from 1 on."""
    found = submission(run)
    manifest = run.manifest.read_bytes()
    made = []
    for number in range(1, count + 1):
        copy = RunFolder(path=run.path.with_name(f"copy-r{number}"))
        copy.logs.mkdir(parents=True)
        copy.manifest.write_bytes(manifest)
        write(copy, msgspec.structs.replace(found, native_id=f"5000_{number}"))
        made.append(copy)
    return made


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    """Forbid writing below a folder; root needs a mount for that."""
    if os.geteuid() != 0:
        path.chmod(0o500)
        yield
        path.chmod(0o700)
        return
    if call(["mount", "--bind", str(path), str(path)], 10).returncode != 0:
        pytest.skip("this root may not mount")
    try:
        assert call(["mount", "-o", "remount,ro,bind", str(path)], 10).returncode == 0
        yield
    finally:
        call(["umount", str(path)], 10)


def test_a_thousand_runs_are_one_question(slurm: FakeSlurm) -> None:
    (run,) = submit(job(), RESULTS, []).new
    copies(run, 1000)
    entries = [FIELD.join(("5000_[1-1000]", "PENDING", "N/A", "", "Priority", "j", "c"))]
    (slurm.folder / "queue").write_text("".join(f"{entry}{RECORD}\n" for entry in entries))
    states = [found.state for found in runs_below(run.path.parent)]
    assert states.count(JobState.PENDING) == 1000
    assert states.count(JobState.LOST) == 1
    assert len(slurm.calls("squeue")) == len(slurm.calls("sacct")) == 1
    assert option(slurm.calls("squeue")[0], "jobs") == "1001,5000"
    assert option(slurm.calls("sacct")[0], "jobs") == "1001"


def test_an_end_is_learned_and_not_asked_for_again(slurm: FakeSlurm) -> None:
    (run,) = submit(job(), RESULTS, []).new
    slurm.becomes("1001", "OUT_OF_MEMORY", nodes="n1")
    (first,) = runs_below(run.path)
    found = submission(run)
    assert (found.state, found.native_id) == (JobState.OUT_OF_MEMORY, "1001")
    assert found.reason == "it used more memory than it had requested"
    slurm.forgets()
    (second,) = runs_below(run.path)
    assert (second.state, second.problem) == (first.state, first.problem)
    assert len(slurm.calls("squeue")) == 1


def test_a_run_that_ended_well_is_not_asked_for(slurm: FakeSlurm) -> None:
    (run,) = submit(job(), RESULTS, []).new
    says(run, ended=1001.0, exit_code=0)
    assert [found.state for found in runs_below(run.path)] == [JobState.COMPLETED]
    assert slurm.calls("squeue") == []


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


def test_a_colleague_who_may_only_read_gets_an_answer(slurm: FakeSlurm) -> None:
    home = submit(study(), RESULTS, []).home
    slurm.becomes("1001_1", "TIMEOUT", nodes="n1")
    before = {path: path.read_bytes() for path in home.rglob("submission.json")}
    with read_only(home):
        states = sorted(found.state.value for found in runs_below(home))
    assert states == ["PENDING", "PENDING", "PENDING", "TIMEOUT"]
    assert {path: path.read_bytes() for path in home.rglob("submission.json")} == before
    assert list(home.glob("*/.submission*")) == []


def test_a_run_of_a_requeued_job_waits_again(slurm: FakeSlurm) -> None:
    (run,) = submit(job(), RESULTS, []).new
    says(run, ended=1001.0, exit_code=143)
    slurm.becomes("1001", "PENDING", reason="BeginTime")
    (found,) = runs_below(run.path)
    assert found.state is JobState.PENDING
    assert found.job_report is not None
    assert found.job_report.reason.startswith("it ran until ")
    assert "; its start time has not been reached" in found.job_report.reason


def test_silence_is_no_end(slurm: FakeSlurm) -> None:
    (run,) = submit(job(), RESULTS, []).new
    slurm.on("squeue", f"echo '{BUSY}' >&2; exit 1")
    (found,) = runs_below(run.path)
    assert (found.state, submission(run).state) == (JobState.UNKNOWN, None)


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
    assert {key: (n, found.folder.run_id) for key, (n, found) in latest.items()} == {
        "p-r1": (10, "p-r1.10"),
        "p-r2": (1, "p-r2"),
    }


def test_a_damaged_list_of_the_study_hides_no_run(
    slurm: FakeSlurm, caplog: pytest.LogCaptureFixture
) -> None:
    done = submit(study(), RESULTS, [])
    (done.home / "study.json").write_text("{")
    assert missing_runs(done.home, runs_below(done.home)) == ()
    assert "study.json: damaged" in caplog.text
    assert "so missing runs are unknown" in caplog.text


def test_a_scheduler_that_is_slow_to_answer_is_named(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    done = submit(job(), RESULTS, [])
    monkeypatch.setattr(slow_answer, "NOTICE_S", 0.0)
    slurm.on("squeue", "sleep 1")
    runs_below(done.home)
    assert "Slurm has not answered for 0 s; it is still waited for" in caplog.messages
