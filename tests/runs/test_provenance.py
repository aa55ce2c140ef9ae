"""The state of the code that a run records."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
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


def test_the_versions_of_packages_are_those_of_the_first_folder_that_has_them(
    tmp_path: Path,
) -> None:
    names = ("b/torch-2.1.0+cu118.dist-info", "a/torch-2.9.1.dist-info", "a/numpy-1.24.2.egg-info")
    for name in (*names, "a/torchvision-0.2.dist-info", "a/submitit-1.5.3-py3.11.egg-info"):
        (tmp_path / name).mkdir(parents=True)
    code = f"import sys, json; sys.path[:0] = {[str(tmp_path / name) for name in 'cab']}"
    code += "\nfrom hpc_train.runs.provenance import provenance; from pathlib import Path"
    code += "\nprint(json.dumps(provenance(Path(), [])['packages']))"
    code += "\nassert 'importlib.metadata' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found == {"torch": "2.9.1", "numpy": "1.24.2", "submitit": "1.5.3"}


def test_the_versions_are_those_of_the_installation() -> None:
    installed = {}
    for name in ("torch", "numpy", "submitit"):
        with suppress(PackageNotFoundError):
            installed[name] = version(name)
    assert provenance(Path(), [])["packages"] == installed
    assert installed
