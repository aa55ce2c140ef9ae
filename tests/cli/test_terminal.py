"""What logs and file names hold never reaches a terminal as more than text."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.cli.output import CLEAR
from tests.cli.conftest import Hpctrain
from tests.cli.pseudo_terminal import read_to_end
from tests.submissions.runs_of import written

pytestmark = pytest.mark.process

ACTIVE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
BUSY = re.compile(re.escape(CLEAR) + r"(?:[a-z ]+, \d+ s(?=\r))?")
NAME = "n\x1b[31m\x9b2J\u202eame.log"
HOST = "ho\x07\x9b31m\u202est"
STEP = f"[job@1,3][{HOST}:12]<stdout>: iter 3: loss 2.2, time 52.1ms, mfu 30%\n"
FAILURE = (
    'Traceback (most recent call last):\n  File "a\u202e.py", line 3, in f\n'
    "ValueError: \x1b]0;title\x07\u202e\u2066 bad \x85\x9b31m\n"
)


def on_terminal(*words: str) -> str:
    """Return what a terminal would be sent, without the line of a command that is silent."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "hpc_train", *words]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL):
        os.close(theirs)
        return BUSY.sub("", read_to_end(ours))


@pytest.mark.parametrize("words", [["collect"], ["diagnose"], ["report"]], ids=" ".join)
def test_no_character_that_acts(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(NAME).write_text(STEP + FAILURE)
    sent = on_terminal(*words, NAME)
    assert "ame.log" in sent or "ValueError" in sent
    assert not ACTIVE.findall(sent.replace("\r\n", "\n"))


def test_json_still_says_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(NAME).write_text(STEP)
    first = on_terminal("collect", "--json", NAME).splitlines()[0]
    assert (json.loads(first)["run"], json.loads(first)["node"]) == (NAME, HOST)


def test_states_have_a_colour_unless_it_is_unwanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hpctrain: Hpctrain
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    written(tmp_path / "results/train", "a", "", exit_code=0)
    words = ("status", "train")
    assert "\x1b[32mCOMPLETED\x1b[0m" in on_terminal(*words)
    assert "\x1b[32m" not in on_terminal(*words, "--color", "never")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[32m" not in on_terminal(*words)
    assert "\x1b" not in hpctrain(*words).stdout
    assert "\x1b[32mCOMPLETED\x1b[0m" in hpctrain(*words, "--color", "always").stdout
