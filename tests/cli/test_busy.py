"""The line on a terminal while a command has nothing to print."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

from tests.cli.pseudo_terminal import read_to_end

CODE = """
import time
from hpc_train.cli.busy import busy
from hpc_train.cli.output import say
read = []
with busy(lambda: f"reading logs, {{len(read)}} of 2"):
    read.append(1)
    end = time.monotonic() + float({seconds})
    while time.monotonic() < end:
        time.sleep(0.05)
    say("a warning")
print("done")
"""


def output(seconds: float, *, terminal: bool) -> str:
    """Return what a command prints that is silent for some seconds, stdout and stderr together."""
    ours, theirs = pty.openpty() if terminal else os.pipe()
    code = CODE.format(seconds=seconds)
    with subprocess.Popen([sys.executable, "-c", code], stdout=theirs, stderr=theirs):
        os.close(theirs)
        return read_to_end(ours)


def test_after_a_second_a_terminal_says_what_is_done() -> None:
    """A message replaces the line."""
    sent = output(1.2, terminal=True)
    first, *_, message, last = sent.split("\r\x1b[K")[1:]
    assert first.startswith("reading logs, 1 of 2, 1 s")
    assert message == "hpctrain: a warning\r\n"
    assert last == "done\r\n"


def test_a_quick_command_shows_nothing() -> None:
    assert output(0, terminal=True).replace("\r\x1b[K", "") == "hpctrain: a warning\r\ndone\r\n"


def test_without_a_terminal_nothing_is_shown() -> None:
    assert output(1.2, terminal=False) == "hpctrain: a warning\ndone\n"


def test_lint_says_what_it_waits_for() -> None:
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-m", "hpc_train", "lint", "-"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        begun = os.read(ours, 4096)
        assert begun.startswith(b"\r\x1b[Kchecking job scripts, 0 of 1, 1 s")
        assert process.stdin is not None
        process.stdin.write(b"#!/bin/bash\n#SBATCH --time=1:00\nsrun true\n")
        process.stdin.close()
        sent = read_to_end(ours)
    *_, last = sent.split("\r\x1b[K")
    assert last.startswith("-:2: HT018 ")
