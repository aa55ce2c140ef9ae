"""An executor from outside the package, added by the steps that CONTRIBUTING.md names."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hpc_train.base.registry import BUILT_IN
from tests.submissions.waiting import ended, wait_for

ROOT = Path(__file__).resolve().parents[2]
RECIPE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPE = RECIPE.partition("## Add an executor\n")[2].partition("\n## ")[0]
PROFILE = """\
schema: 1
name: desk
description: processes of this machine, without a queue
scheduler: {scheduler}
launchers: {{default: single, allowed: [single]}}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Install the recipe's module with its entry point, and a profile that names it."""
    (module,) = re.findall(r"^```python\n(.+?)^```$", RECIPE, re.DOTALL | re.MULTILINE)
    flat = " ".join(RECIPE.split())
    ((entry, group),) = re.findall(r"entry point `NAME = (\S+)` of the group `([\w.]+)`", flat)
    target = entry.replace("package.module", "now_executor").replace("CLASS", "NowExecutor")
    (tmp_path / "now_executor.py").write_text(module)
    metadata = tmp_path / "now_executor-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: now-executor\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(f"[{group}]\nnow = {target}\n")
    (tmp_path / "desk.yaml").write_text(PROFILE.format(scheduler="now"))
    return tmp_path


def hpctrain(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hpc_train", *words],
        cwd=home,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{home}"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def submit(home: Path, command: str, *words: str) -> subprocess.CompletedProcess[str]:
    job = {"name": "job", "command": ["bash", "-c", command], "resources": {"time": "10m"}}
    (home / "job.yaml").write_text(json.dumps(job))
    return hpctrain(home, "submit", "job.yaml", "--site", "desk.yaml", *words)


def run_of(home: Path) -> dict[str, Any]:
    done = hpctrain(home, "status", "job", "--json")
    (run,) = json.loads(done.stdout)["runs"]
    assert isinstance(run, dict)
    return run


def test_it_runs_a_job_to_its_end(home: Path) -> None:
    done = submit(home, "echo it ran", "--wait")
    assert done.returncode == 0, done.stdout + done.stderr
    assert run_of(home)["state"] == "COMPLETED"
    logs = [log.read_text() for log in (home / "results").rglob("rank-0.out")]
    assert [log.strip() for log in logs] == ["it ran"]


def test_a_job_is_queried_and_cancelled(home: Path) -> None:
    assert submit(home, "touch begun; sleep 600", "--set", f"workdir={home}").returncode == 0
    wait_for((home / "begun").exists)
    assert run_of(home)["state"] == "RUNNING"
    done = hpctrain(home, "cancel", "job")
    assert done.returncode == 0, done.stderr
    assert run_of(home)["state"] == "CANCELLED"
    (file,) = (home / "results").rglob("submission.json")
    pid = json.loads(file.read_text())["native_id"]
    wait_for(lambda: ended(pid))


def test_an_unknown_scheduler_is_refused_with_the_known_ones(home: Path) -> None:
    (home / "desk.yaml").write_text(PROFILE.format(scheduler="slrum"))
    done = submit(home, "true")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    known = ", ".join((*BUILT_IN["executors"], "now"))
    said = f"must be one of {known}, not 'slrum'; did you mean 'slurm'?"
    assert f"desk.yaml:4: scheduler: {said}" in done.stderr
