"""Ctrl-C ends the waiting, not the runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.pipeline.waiting import finished

Hpctrain = Callable[..., subprocess.CompletedProcess[str]]


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
