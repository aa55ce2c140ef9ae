"""A process that makes no step writes its stack and is ended, also where Python itself is held."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

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


def run(last: str, seconds: str = "1", before: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", before + PROGRAM.format(last=last)],
        env={"PYTHONPATH": str(ROOT), "HPCTRAIN_HANG_AFTER": seconds},
        capture_output=True,
        text=True,
        timeout=120,
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


@pytest.mark.parametrize("seconds", ["", "0", "soon", "-3"])
def test_without_a_time_nothing_is_watched(seconds: str) -> None:
    done = run("sys.exit(3)", seconds)
    assert (done.returncode, done.stderr) == (3, "")


def test_the_watch_can_be_ended() -> None:
    assert run("hang_watch.stop(); time.sleep(2); sys.exit(3)").returncode == 3


def test_a_timer_of_the_program_stays() -> None:
    own = "import signal; signal.signal(signal.SIGALRM, lambda *_: 0); signal.alarm(60)\n"
    assert run("sys.exit(signal.alarm(0) > 50)", before=own).returncode == 1
