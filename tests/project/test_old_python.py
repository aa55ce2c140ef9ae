"""An older Python reads the first file of the package, and prints one sentence."""

from __future__ import annotations

import ast
import filecmp
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.base.data_folders import schema_file

ROOT = Path(__file__).resolve().parents[2]
OLDER = """
import sys
sys.version, sys.version_info = "3.9.18 (main)", (3, 9, 18)
import hpc_train
"""


@pytest.mark.parametrize("name", ["__init__.py", "version.py"])
def test_what_runs_first_is_python_3_6(name: str) -> None:
    source = (ROOT / "hpc_train" / name).read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 6))
    futures = [node for node in tree.body if getattr(node, "module", "") == "__future__"]
    # Python 3.7 was the first with annotations in __future__.
    assert futures == []


@pytest.mark.process
def test_an_older_python_gets_one_sentence() -> None:
    done = subprocess.run(
        [sys.executable, "-c", OLDER], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"hpctrain needs Python 3.10 or later, and {sys.executable} is Python 3.9.18: load a "
        "module of a newer Python, or type: uv tool install --python 3.12 hpctrain "
        "(docs/install.md)\n"
    )


def test_the_declared_python_is_the_one_that_is_checked() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    source = (ROOT / "hpc_train" / "__init__.py").read_text(encoding="utf-8")
    assert 'requires-python = ">=3.10"' in project
    assert "sys.version_info < (3, 10)" in source


ALLOWED = {
    *(
        ".ci",
        ".pre-commit-hooks.yaml",
        ".gitignore",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "Makefile",
        "README.md",
    ),
    *("constraints.txt", "docs", "examples", "hpc_train", "pyproject.toml", "results"),
    *("site_profiles", "templates", "tests"),
}


def test_only_these_are_tracked_at_the_top() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a checkout of git")
    names = {name.partition("/")[0] for name in listed.stdout.decode().split("\0") if name}
    assert names == ALLOWED


# Click keeps the options of help that a command was asked for first.
@pytest.mark.process
def test_the_page_is_current() -> None:
    made = subprocess.run(
        [sys.executable, ROOT / "docs/man/man_page.py"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (ROOT / "docs/man/hpctrain.1").read_text(encoding="utf-8") == made.stdout, "make man"


@pytest.mark.process
def test_the_schemas_are_current(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, ROOT / "docs/man/json_schemas.py", tmp_path],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True,
    )  # fmt: skip
    stored = schema_file("job").parent
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {path.name for path in stored.iterdir()}
    assert filecmp.cmpfiles(stored, tmp_path, names, shallow=False)[0] == list(names), "make man"
