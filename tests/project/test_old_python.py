"""An older Python reads the first file of the package, and prints one sentence."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

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
