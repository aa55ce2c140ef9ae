"""Calls of qsub that are not answered: the job is found, never submitted twice, and never lost."""

import os
import shutil
from pathlib import Path

import pytest

from hpc_train.base import processes
from hpc_train.base.errors import SubmitError
from hpc_train.pbs import executor, jobs as pbs_jobs
from hpc_train.runs import batch_executor
from hpc_train.runs.run import JobState
from tests.pbs.test_executor import Make, jobs, make, pbs, state, submission, submit
from tests.servers.pbs import RunningPbs
from tests.submissions.waiting import wait_for

__all__ = ["make", "pbs"]


def test_a_lost_answer_is_found(pbs: RunningPbs, make: Make) -> None:
    pbs.fault("lost-answer")
    run = make()
    submit(run)
    assert (jobs(pbs), submission(run).native_id) == (["1.pbs"], "1.pbs")


def test_a_request_that_did_not_arrive_is_repeated(pbs: RunningPbs, make: Make) -> None:
    pbs.fault("refused-once")
    run = make()
    submit(run)
    assert (jobs(pbs), submission(run).native_id) == (["1.pbs"], "1.pbs")


def test_a_silent_server_holds_a_submission_for_a_bounded_time(
    pbs: RunningPbs, make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pbs.fault("silent")
    monkeypatch.setattr(executor, "_PATIENCE_S", 2.0)
    monkeypatch.setattr(batch_executor, "_SEARCH_S", 1.0)
    monkeypatch.setattr(processes, "NOTICE_S", 0.2)
    monkeypatch.setattr(pbs_jobs, "_TIMEOUT_S", 1.0)
    run = make()
    with pytest.raises(SubmitError, match="qsub was not answered: no answer within 2") as failure:
        submit(run)
    # It may have been accepted: what it asked for is kept, and is found by it.
    assert submission(run).native_id == ""
    assert failure.value.transient
    assert "hpctrain status home   says whether PBS has it" in failure.value.hint
    assert "hpctrain retry home   submits it if PBS never received it" in failure.value.hint
    assert "qsub has not answered for 0 s; waiting up to 2 s" in caplog.text
    assert "in 0 s its queue says whether it has the job" in caplog.text
    assert state(run).state is JobState.UNKNOWN


def counting(folder: Path, name: str, then: str) -> Path:
    """Put a command of PBS first on PATH that counts its calls in a file, which is returned."""
    (folder / "first").mkdir()
    program = folder / "first" / name
    program.write_text(f"#!/bin/sh\necho called >>{folder}/calls\n{then}\n")
    program.chmod(0o755)
    return folder / "calls"


@pytest.mark.parametrize(("repeat_s", "calls"), [(0.0, 1), (600.0, 3)])
def test_no_call_is_later_than_the_deadline(
    pbs: RunningPbs,
    make: Make,
    monkeypatch: pytest.MonkeyPatch,
    repeat_s: float,
    calls: int,
) -> None:
    # qsub is not answered, and qselect says that there is no job.
    file = counting(pbs.work.parent, "qsub", "echo 'qsub: Connection timed out' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{file.parent}/first:{os.environ['PATH']}")
    monkeypatch.setattr(batch_executor, "_REPEAT_S", repeat_s)
    with pytest.raises(SubmitError, match="Connection timed out"):
        submit(make())
    assert file.read_text().count("called") == calls


def test_of_two_jobs_of_one_request_the_later_one_is_deleted(
    pbs: RunningPbs, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = f'"{shutil.which("qsub")}" "$@" >/dev/null;'
    text = f"{twice} {twice} echo 'qsub: Connection timed out' >&2; exit 1"
    file = counting(pbs.work.parent, "qsub", text)
    monkeypatch.setenv("PATH", f"{file.parent}/first:{os.environ['PATH']}")
    run = make()
    submit(run)
    assert submission(run).native_id == "1.pbs"
    wait_for(lambda: pbs.command("qselect").stdout.split() == ["1.pbs"])


def test_the_longest_wait_for_a_silent_server_is_three_minutes() -> None:
    assert executor._PATIENCE_S + batch_executor._SEARCH_S + pbs_jobs._TIMEOUT_S < 180
    # Else a run would be taken for lost, and submitted again, while its qsub may be accepted.
    assert executor._PATIENCE_S + batch_executor._UNDER_WAY_S < batch_executor.WITHIN_S


def test_a_server_that_cannot_be_reached_has_no_job(pbs: RunningPbs, make: Make) -> None:
    (pbs.folder / "socket").rename(pbs.folder / "gone")
    run = make()
    try:
        with pytest.raises(SubmitError, match="PBS cannot be reached, and has no job") as failure:
            submit(run)
    finally:
        (pbs.folder / "gone").rename(pbs.folder / "socket")
    assert failure.value.hint == "qstat -B answers when it does; submit again then"
    assert not run.submission.exists()


@pytest.mark.parametrize(("search_s", "calls"), [(1.0, 1), (600.0, 3)])
def test_no_search_is_later_than_the_deadline(
    pbs: RunningPbs,
    make: Make,
    monkeypatch: pytest.MonkeyPatch,
    search_s: float,
    calls: int,
) -> None:
    pbs.fault("silent")
    file = counting(pbs.work.parent, "qselect", "sleep 1.2; echo 'Connection refused' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{file.parent}/first:{os.environ['PATH']}")
    monkeypatch.setattr(executor, "_PATIENCE_S", 1.0)
    for name, value in {"_UNDER_WAY_S": 0.0, "_SEARCH_S": search_s}.items():
        monkeypatch.setattr(batch_executor, name, value)
    with pytest.raises(SubmitError, match="qsub was not answered"):
        submit(make())
    assert file.read_text().count("called") == calls
