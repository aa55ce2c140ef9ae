"""The line on a terminal while a command has nothing to print."""

import os
import pty
import subprocess
import sys

import pytest

from tests.cli.pseudo_terminal import read_to_end

CODE = """
import time
from hpc_train.cli.output import busy
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


@pytest.mark.process
def test_after_a_second_a_terminal_says_what_is_done() -> None:
    """A message replaces the line."""
    sent = output(1.2, terminal=True)
    first, *_, message, last = sent.split("\r\x1b[K")[1:]
    assert first.startswith("reading logs, 1 of 2, 1 s")
    assert message == "hpctrain: a warning\r\n"
    assert last == "done\r\n"
