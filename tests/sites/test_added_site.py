"""The profile of docs/writing-a-site.md, as a file on the search path: found, rendered, linted."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "writing-a-site.md").read_text(encoding="utf-8")
JOB = {
    "name": "train",
    "command": ["python", "train.py"],
    "account": "proj1234",
    "resources": {"nodes": 2, "gpus_per_node": 4, "time": "1h"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (profile,) = re.findall(r"^```yaml\n# mysite.yaml\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "mysite.yaml").write_text(profile)
    (tmp_path / "job.yaml").write_text(json.dumps(JOB))
    return tmp_path


def hpctrain(folder: Path, *words: str, code: int = 0) -> str:
    environment = {**os.environ, "HPCTRAIN_SITE_PATH": "profiles", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "hpc_train", *words],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_it_is_found_by_its_name(folder: Path) -> None:
    names = [site["name"] for site in json.loads(hpctrain(folder, "site", "list", "--json"))]
    assert "mysite" in names


def test_a_job_is_rendered_for_it_and_the_script_has_no_finding(folder: Path) -> None:
    script = hpctrain(folder, "render", "job.yaml", "--site", "mysite")
    assert "#SBATCH --account=proj1234\n" in script
    (folder / "job.sbatch").write_text(script)
    said = json.loads(hpctrain(folder, "lint", "job.sbatch", "--site", "mysite", "--json"))
    assert said["findings"] == []


def test_what_it_forbids_is_refused(folder: Path) -> None:
    words = ("render", "job.yaml", "--site", "mysite", "--set")
    said = hpctrain(folder, *words, "launcher=mpirun", code=2)
    assert "its Open MPI is built without Slurm" in said
    assert "16" in hpctrain(folder, *words, "resources.nodes=17", code=2)


def test_its_sample_jobs_have_no_error(folder: Path) -> None:
    assert "; 0 errors" in hpctrain(folder, "site", "check", "mysite")
