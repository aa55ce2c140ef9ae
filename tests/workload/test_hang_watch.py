"""A process that makes no step writes its stack and is ended, also where Python itself is held."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """\
import re, signal, sys, time
from hpc_train.workload import hang_watch
hang_watch._GRACE_S = 0.2
def last():
    {last}
hang_watch.progress()
last()
"""
STEPS = """\
for _ in range(5):
        time.sleep(0.8)
        hang_watch.progress()
    sys.exit(3)"""


def run(
    last: str, seconds: str = "1", before: str = "", **more: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", before + PROGRAM.format(last=last)],
        env={"PYTHONPATH": str(ROOT), "HPCTRAIN_HANG_AFTER": seconds, **more},
        capture_output=True,
        text=True,
        timeout=240,
    )


# The second one is a search that holds the interpreter's lock for years.
@pytest.mark.parametrize("hang", ["time.sleep(60)", "re.match('(a+)+b', 'a' * 60)"])
def test_a_process_without_a_step_writes_its_stack_and_ends(hang: str) -> None:
    done = run(hang)
    assert done.returncode == -signal.SIGALRM
    assert "Timeout (0:00:01)!" in done.stderr
    assert "in last" in done.stderr


def test_a_step_starts_the_time_again() -> None:
    # Four seconds of steps, under a limit of three.
    done = run(STEPS, "3")
    assert (done.returncode, done.stderr) == (3, "")


@pytest.mark.parametrize("seconds", ["", "soon"])
def test_without_a_time_nothing_is_watched(seconds: str) -> None:
    done = run("sys.exit(3)", seconds)
    assert (done.returncode, done.stderr) == (3, "")


def test_the_watch_can_be_ended() -> None:
    assert run("hang_watch.stop(); time.sleep(2); sys.exit(3)").returncode == 3


def test_a_timer_of_the_program_stays() -> None:
    own = "import signal; signal.signal(signal.SIGALRM, lambda *_: 0); signal.alarm(60)\n"
    assert run("sys.exit(signal.alarm(0) > 50)", before=own).returncode == 1


@pytest.fixture
def py_spy(tmp_path: Path) -> dict[str, str]:
    """Return a PATH with a program of this name; `dumped` is what it was asked."""
    program = tmp_path / "py-spy"
    program.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/dumped\necho stacks of C functions\n')
    program.chmod(0o755)
    return {"PATH": f"{tmp_path}:{os.environ['PATH']}"}


WAITS = """\
import pathlib
    while not pathlib.Path(sys.argv[1]).exists():
        time.sleep(0.05)
    print(__import__("os").getpid())"""
ENDS = """\
hang_watch.stop()
    sys.exit(__import__("os").wait()[1])"""


def test_py_spy_looks_into_a_process_that_hangs(tmp_path: Path, py_spy: dict[str, str]) -> None:
    later = PROGRAM.replace("_GRACE_S = 0.2", "_GRACE_S = 100").format(last=WAITS)
    done = subprocess.run(
        [sys.executable, "-c", later, str(tmp_path / "dumped")],
        env={"PYTHONPATH": str(ROOT), "HPCTRAIN_HANG_AFTER": "1", **py_spy},
        capture_output=True,
        text=True,
        timeout=240,
    )
    pid = done.stdout.split()[-1]
    assert (tmp_path / "dumped").read_text() == f"dump --native --pid {pid}\n"


def test_py_spy_is_not_started_after_the_last_step(tmp_path: Path, py_spy: dict[str, str]) -> None:
    assert run(ENDS, **py_spy).returncode == 0
    assert not (tmp_path / "dumped").exists()


@pytest.mark.skipif(shutil.which("py-spy") is None, reason="py-spy is not installed")
def test_the_stacks_of_py_spy_are_in_the_log() -> None:
    done = run("time.sleep(60)", PATH=os.environ["PATH"])
    assert re.search(r"last \(.*\)", done.stderr), done.stderr
