"""Every published study: its tables are made anew from its records, and are the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STUDIES = sorted((ROOT / "results" / "studies").iterdir())


def test_there_is_one() -> None:
    assert STUDIES


@pytest.mark.parametrize("study", STUDIES, ids=lambda path: path.name)
def test_the_table_follows_from_the_records(study: Path, tmp_path: Path) -> None:
    copy = tmp_path / study.name
    shutil.copytree(study, copy)
    (copy / "report.md").unlink()
    done = subprocess.run(
        [sys.executable, "-m", "hpc_train", "report", str(copy), "-o", str(copy / "report.md")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert (copy / "report.md").read_text() == (study / "report.md").read_text()
