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
with busy("reading logs"):
    end = time.monotonic() + float({seconds})
    while time.monotonic() < end:
        time.sleep(0.05)
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
    sent = output(1.2, terminal=True)
    first, *_, last = sent.split("\r\x1b[K")[1:]
    assert first.startswith("reading logs, 1 s")
    assert last == "done\r\n"


def test_a_quick_command_shows_nothing() -> None:
    assert output(0, terminal=True) == "done\r\n"


def test_without_a_terminal_nothing_is_shown() -> None:
    assert output(1.2, terminal=False) == "done\n"
