"""A folder to submit from, with a job, a study and a script that end quickly."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command_line import run_command
from tests.submissions.conftest import desk

__all__ = ["desk"]

JOB = f"""\
name: demo
command: [{sys.executable}, -c, "import os; print('X is', os.environ.get('X'))"]
launcher: single
resources: {{cpus_per_task: 1}}
"""
STUDY = f"""\
name: grid
job:
  command: [{sys.executable}, -c, "import os, sys; sys.exit(int(os.environ['X']))"]
  launcher: single
  resources: {{cpus_per_task: 1}}
axes: {{env.X: [0, 1]}}
repetitions: 2
scaling: strong
"""
SCRIPT = """\
import pathlib, sys, time

while sys.argv[1:2] == ["wait"] and not pathlib.Path("go").exists():
    time.sleep(0.05)
print("words", sys.argv[1:])
"""


@pytest.fixture
def files(desk: Path) -> Path:
    """The folder, with job.yaml, study.yaml and train.py."""
    (desk / "job.yaml").write_text(JOB)
    (desk / "study.yaml").write_text(STUDY)
    (desk / "train.py").write_text(SCRIPT)
    return desk


@pytest.fixture
def hpc() -> Callable[..., str]:
    """Run a command that has to work, in the current folder; return what it prints."""

    def run(*words: str) -> str:
        done = run_command(words, dict(os.environ))
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
