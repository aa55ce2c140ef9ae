"""The study of `make demo` in small: submitted, trained with torch, and reported."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.gate, pytest.mark.torch, pytest.mark.process]


def hpctrain(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hpc_train", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_a_study_on_this_machine_becomes_a_report_with_a_figure(tmp_path: Path) -> None:
    study = str(ROOT / "examples/digits/study.yaml")
    small = ("axes.launcher=[spawn]", "repetitions=1")
    settings = [word for one in small for word in ("--set", one)]
    hpctrain(tmp_path, "submit", study, "--site", "local", "--wait", *settings)
    rows = json.loads(hpctrain(tmp_path, "report", "digits-strong", "-f", "json").stdout)["rows"]
    assert [(row["tasks_per_node"], row["n_ok"]) for row in rows] == [(1, 1), (2, 1)]
    assert rows[0]["speedup"]["value"] == 1.0
    assert rows[1]["speedup"]["value"] > 0
    hpctrain(tmp_path, "report", "digits-strong", "-o", "report.svg")
    assert "efficiency" in (tmp_path / "report.svg").read_text(encoding="utf-8").lower()
