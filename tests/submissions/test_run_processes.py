"""The processes of a run: the script is asked to end, and passes that on; the rest is killed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpc_train.model.run import RunFolder
from hpc_train.submissions.run_processes import processes_of, terminate
from hpc_train.subprocesses import ended, start
from tests.pipeline.waiting import wait_for

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
