"""Queues of this machine: their locks, their supervisor, and the ends that it records."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.base.errors import SubmitError
from hpc_train.base.processes import ended, start
from hpc_train.hosts.local import LocalExecutor, processes_of, supervise, terminate
from hpc_train.runs.executor import ExecutorOptions
from hpc_train.runs.json_files import read_json, to_json
from hpc_train.runs.run import JobReport, JobState, RunFolder, Script, Submission
from hpc_train.runs.run_folders import create_runs
from hpc_train.runs.run_queue import FOLDER, Queue, is_held, new_queue, start_queue, take
from tests.submissions.runs_of import manifest
from tests.submissions.waiting import wait_for

SUBMITTED = Submission(executor="local", native_id="q", submitted="2026-11-01T10:00:00+00:00")
CANCELLED = Submission(
    executor="local", native_id="q", submitted="now", state=JobState.CANCELLED, reason="by you"
)


@pytest.mark.parametrize(
    ("during", "state", "reason"),
    [
        (SUBMITTED, JobState.FAILED, "the job script ended with exit code 3, without a status"),
        (CANCELLED, JobState.CANCELLED, "by you"),
    ],
)
def test_the_end_of_a_cancelled_run_is_not_a_failure(
    tmp_path: Path, during: Submission, state: JobState, reason: str
) -> None:
    text = 'cp "$HPCTRAIN_RUN/during.json" "$HPCTRAIN_RUN/submission.json"; exit 3\n'
    script = Script(text=text, digest="d" * 64, template_digest="t" * 64)
    (run,) = create_runs(tmp_path, [(manifest("j-1"), script)])
    (run.path / "during.json").write_bytes(to_json(during))
    run.submission.write_bytes(to_json(SUBMITTED))
    locks = [os.open(tmp_path / name, os.O_CREAT | os.O_RDWR) for name in ("queue", "machine")]
    try:
        supervise(run, SUBMITTED, (locks[0], locks[1]))
    finally:
        for lock in locks:
            os.close(lock)
    found = read_json(run.submission, Submission)
    assert (found.state, found.reason) == (state, reason)


def test_a_run_that_could_not_be_started_is_lost_with_the_reason(tmp_path: Path) -> None:
    queue = Queue(home=tmp_path, queue_id="q")
    script = Script(text="exit 3\n", digest="d" * 64, template_digest="t" * 64)
    (run,) = create_runs(tmp_path, [(manifest("j-1"), script)])
    run.submission.write_bytes(to_json(SUBMITTED))
    run.logs.rmdir()
    run.logs.write_text("no folder")
    queue.file("json").parent.mkdir()
    queue.file("json").write_bytes(to_json({"runs": [run.run_id]}))
    lock = take(queue.file("lock"))
    assert lock is not None
    words = [
        sys.executable,
        "-m",
        "hpc_train.runs.run_queue",
        "hpc_train.hosts.local:run_one",
    ]
    with queue.file("log").open("wb") as log:
        started = subprocess.run(
            [*words, str(tmp_path), "q", str(lock)], stderr=log, pass_fds=[lock], check=True
        )
    assert started.returncode == 0
    os.close(lock)
    # The supervisor holds the lock until its end.
    wait_for(lambda: not is_held(queue.file("lock")))
    (report,) = LocalExecutor().query({run: SUBMITTED}).values()
    assert report.state is JobState.LOST
    assert report.reason == (
        f"{run.logs}/job.out: cannot be written: Not a directory; "
        f"correct it before hpctrain retry {tmp_path.name}"
    )


def test_a_run_says_who_holds_the_machine_and_no_other_user_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    machine = tmp_path / f"hpctrain-{os.getuid()}.lock"
    script = Script(text="exit 3\n", digest="d" * 64, template_digest="t" * 64)
    (run,) = create_runs(tmp_path / "j", [(manifest("j-1"), script)])
    held = take(machine)
    assert held is not None
    LocalExecutor().submit(tmp_path / "j", [run], ExecutorOptions())
    assert machine.stat().st_mode & 0o777 == 0o600
    submission = read_json(run.submission, Submission)

    def report() -> JobReport:
        return LocalExecutor().query({run: submission})[run]

    wait_for(lambda: report().reason != "")
    assert report().state is JobState.PENDING
    assert f"{machine}, which another run of yours holds" in report().reason
    os.close(held)
    wait_for(lambda: read_json(run.submission, Submission).state is JobState.FAILED)
    if os.geteuid() == 0:
        os.chown(machine, 12345, 12345)
        with pytest.raises(SubmitError, match="belongs to another user"):
            LocalExecutor().submit(tmp_path / "j", [run], ExecutorOptions())


def test_of_a_lock_that_this_user_may_not_see_nothing_is_said(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch(mode=0o000)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        assert is_held(path) is None
    finally:
        if root:
            os.seteuid(0)
    assert is_held(tmp_path / "none") is False


def test_a_lock_is_not_taken_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic link"):
        take(tmp_path / "link")
    assert not (tmp_path / "victim").exists()


def test_a_queue_with_a_lock_that_is_held_is_not_started(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    queue = new_queue(tmp_path)
    lock = take(queue.file("lock"))
    with pytest.raises(SubmitError, match="another process holds it"):
        start_queue(queue, (), "local", "no_module:run", ExecutorOptions())
    assert not queue.file("json").exists()
    os.close(lock or 0)


SCRIPT = """\
cd "$HPCTRAIN_RUN"
(trap 'echo told >>rank' TERM; touch up; while :; do sleep 0.05; done) &
trap 'echo told >>script; sleep 0.3; echo ended >>script; exit 0' TERM
while :; do [ -e up ] && touch ready; sleep 0.05; done
"""


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """Return the folder of a run whose rank writes down when it is told to end."""
    run = RunFolder(path=tmp_path / "p-r1")
    run.logs.mkdir(parents=True)
    run.script.write_text(SCRIPT)
    return run


def test_only_the_script_is_told_and_what_it_leaves_is_killed(folder: RunFolder) -> None:
    environment = {**os.environ, "HPCTRAIN_RUN": str(folder.path)}
    script = start(["bash", str(folder.script)], folder.logs / "job.out", environment)
    wait_for((folder.path / "ready").exists)
    terminate(folder, grace_s=1.0)
    assert ended(script, 10.0)
    assert (folder.path / "script").read_text() == "told\nended\n", "it has time to end"
    assert not (folder.path / "rank").exists(), "the launcher says it to its ranks, once"
    assert processes_of(folder) == ()
