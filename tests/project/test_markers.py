"""Tests that need Open MPI or Slurm: skipped with a reason, or failing where that is asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"
TEST = "import pytest\n\n@pytest.mark.mpi\ndef test_ranks():\n    pass\n"
SETTINGS = "[pytest]\nmarkers =\n    mpi: needs mpirun\n"


@pytest.mark.parametrize(("required", "outcome"), [("", "skipped"), ("1", "error")])
def test_without_mpirun(tmp_path: Path, required: str, outcome: str) -> None:
    shutil.copy(CONFTEST, tmp_path)
    (tmp_path / "test_ranks.py").write_text(TEST)
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-ra", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**os.environ, "PATH": str(tmp_path), "HPCTRAIN_REQUIRE_SLURM": required},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode != 0) is bool(required)
    assert f"1 {outcome}" in done.stdout
    assert "mpirun not found; install openmpi-bin" in done.stdout
