"""`submit --wait` on a terminal shows the last measurement of the run that is running."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Hpctrain

TRAIN = """\
import os, time
step = 0
while not os.path.exists("go"):
    step += 1
    print(f'@hpct {{"step": {step}, "step_time": 0.25, "loss": 1.5}}', flush=True)
    time.sleep(0.1)
"""


@pytest.mark.process
def test_the_last_measurement_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    Path("train.py").write_text(TRAIN)
    ours, theirs = pty.openpty()
    options = "--site local --launcher single --cpus-per-task 1 --time 2h --wait"
    words = [sys.executable, "-m", "hpc_train", "submit", "train.py", *options.split()]
    sent = b""
    with subprocess.Popen(words, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL) as process:
        os.close(theirs)
        # Linux says EIO when the last writer has gone.
        try:
            while part := os.read(ours, 65536):
                sent += part
                if b"0.25 s a step, loss 1.5, 2 h 0 min to the time limit" in sent:
                    Path("go").touch()
        except OSError:
            pass
    os.close(ours)
    assert process.returncode == 0
    assert Path("go").exists(), sent.decode()


@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "code", "typed"),
    [
        ("print('step 1: dt 8ms')", 0, "next: hpctrain report sizes\n"),
        (
            "print('step 1 took 8 sec')",
            0,
            "next: hpctrain report sizes --pattern 'step_time= took ([-+\\d.e]+)'\n",
        ),
        (
            "print('step 1: 8 samples/s')",
            0,
            "reading printed rates as those of the whole job;",
        ),
        (
            "import os; print('step 1: dt %dms' % (800 / int(os.environ['WORLD_SIZE']) ** 5))",
            0,
            "\nimplausible efficiency (",
        ),
        ("exit(1)", 1, "next: hpctrain diagnose sizes\n"),
    ],
)
def test_after_a_study_the_next_command_is_printed(
    hpctrain: Hpctrain, command: str, code: int, typed: str
) -> None:
    Path("train.py").write_text(command)
    options = "--name sizes --launcher spawn --cpus-per-task 1 --tasks-per-node 1,2 --wait"
    done = hpctrain("submit", "train.py", "--site", "local", *options.split())
    assert typed in done.stderr
    assert done.returncode == code
    assert done.stderr.count("next: hpctrain status sizes\n") == 1
