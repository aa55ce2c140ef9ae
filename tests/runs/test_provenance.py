"""The state of the code that a run records."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hpc_train.runs.provenance import provenance


def test_the_results_of_a_run_are_no_change_of_the_code(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("pass\n")
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "first")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "run.json").write_text("{}\n")
    assert provenance(tmp_path, [])["git"]["dirty"] is False
    (tmp_path / "train.py").write_text("print()\n")
    assert provenance(tmp_path, [])["git"]["dirty"] is True
