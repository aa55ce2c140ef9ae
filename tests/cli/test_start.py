"""The start of a command: no work of the interpreter that it does not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = "import sys\nfrom hpc_train.cli.main import main\nsys.exit(main())\n"
COUNTED = """\
import atexit, gc, sys
runs = []
gc.callbacks.append(lambda phase, info: runs.append(phase) if phase == "start" else None)
from hpc_train.cli.main import main
atexit.register(lambda: print(len(runs), gc.get_freeze_count(), file=sys.stderr))
sys.argv = ["hpctrain", "render", "job.yaml", "--site", "slurm-generic"]
main()
"""
JOB = "name: demo\ncommand: [python, train.py]\nresources: {nodes: 2, tasks_per_node: 1}\n"


def run(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *argv], cwd=folder, capture_output=True, text=True, timeout=240
    )


@pytest.mark.process
def test_the_folder_of_the_program_is_no_place_for_modules(tmp_path: Path) -> None:
    """Each import would look there first, and find a file that is no module of the program."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "hpctrain").write_text(SCRIPT)
    (tmp_path / "bin" / "click.py").write_text("raise RuntimeError('not click')\n")
    done = run(tmp_path, str(tmp_path / "bin" / "hpctrain"), "site", "list")
    assert done.returncode == 0, done.stderr
    assert "slurm-generic" in done.stdout


@pytest.mark.process
def test_a_start_hardly_searches_for_garbage(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    done = run(tmp_path, "-c", COUNTED)
    assert done.returncode == 0, done.stderr
    collections, frozen = map(int, done.stderr.split()[-2:])
    # 55 to 70 of them with Python's default; those before the call of `main` remain.
    assert collections <= 10
    assert frozen > 10_000
