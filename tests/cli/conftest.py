"""The command as users type it: its exit code and its two outputs."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hpc_train.runs.run_states import cancel, runs_below
from tests.command_line import run_command

Hpctrain = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def hpctrain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hpctrain]:
    """Run `hpctrain` in an empty folder; end whatever it leaves running."""
    monkeypatch.chdir(tmp_path)
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("HPCTRAIN_")},
        "HPCTRAIN_SITE": os.environ.get("HPCTRAIN_SITE", ""),
        "TMPDIR": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
    }

    def run(*words: str, **extra: str) -> subprocess.CompletedProcess[str]:
        return run_command(words, {**environment, **extra})

    yield run
    for home in (tmp_path / "results").glob("*"):
        if any(not run.state.finished for run in runs_below(home)):
            cancel(home)
