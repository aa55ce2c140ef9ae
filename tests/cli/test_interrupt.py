"""Ctrl-C ends the waiting, not the runs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Hpctrain
from tests.submissions.waiting import finished

# Ctrl-C in the first function behind a command. Class bodies are no functions.
INTERRUPTED = """
import inspect, os, signal, sys
def interrupt(frame, event, argument):
    name = frame.f_globals.get("__name__", "")
    is_function = frame.f_code.co_flags & inspect.CO_OPTIMIZED
    inner = name.startswith("hpc_train.") and name.split(".")[1] not in ("cli", "base")
    if event == "call" and is_function and inner:
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)
sys.setprofile(interrupt)
from hpc_train.cli.main import main
main()
"""
TYPED = (
    "submit train.py --site local",
    "render train.py --site local -o script.sh",
    "collect a.log -o records.csv",
    "report a.log -o report.html",
)
pytestmark = pytest.mark.process


def test_the_runs_go_on(hpctrain: Hpctrain, tmp_path: Path) -> None:
    Path("train.py").write_text(
        "import os, time\nwhile not os.path.exists('go'): time.sleep(0.05)\nprint('done')\n"
    )
    words = ["submit", "train.py", "--launcher", "single", "--cpus-per-task", "1", "--wait"]
    waiting = subprocess.Popen(
        [sys.executable, "-m", "hpc_train", *words],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert waiting.stderr is not None
    while not waiting.stderr.readline().startswith("RUNNING"):
        assert waiting.poll() is None
    waiting.send_signal(signal.SIGINT)
    _, errors = waiting.communicate(timeout=240)
    assert waiting.returncode == 130
    assert "the runs continue; hpctrain status train, or cancel train" in errors
    Path("go").touch()
    (run,) = finished(tmp_path / "results" / "train").values()
    assert run.state.value == "COMPLETED"


@pytest.mark.parametrize("words", TYPED)
def test_an_interrupted_command_prints_no_traceback_and_leaves_no_file(
    words: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("print('done')\n")
    (tmp_path / "job.yaml").write_text("command: [python, train.py]\nlauncher: single\n")
    (tmp_path / "a.log").write_text("step 1: 8 samples/s\n")
    before = sorted(tmp_path.rglob("*"))
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *words.split()],
        cwd=tmp_path,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "none/of/these")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(tmp_path.rglob("*")) == before
