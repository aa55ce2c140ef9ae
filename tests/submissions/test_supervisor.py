"""Queues of this machine that one process starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpc_train.errors import SubmitError
from hpc_train.model.run import RunFolder
from hpc_train.submissions.base import ExecutorOptions
from hpc_train.submissions.local import processes_of, terminate
from hpc_train.submissions.run_queue import FOLDER, new_queue, start_queue, take
from hpc_train.subprocesses import ended, start
from tests.pipeline.waiting import wait_for


def test_queues_that_a_process_makes_in_the_same_second_have_different_locks(
    tmp_path: Path,
) -> None:
    queues = [new_queue(tmp_path) for _ in range(100)]
    assert len({queue.file("lock") for queue in queues}) == 100


def test_a_queue_with_a_lock_that_is_held_is_not_started(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    queue = new_queue(tmp_path)
    lock = take(queue.file("lock"), wait=False)
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
