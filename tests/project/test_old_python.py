"""An older Python reads the first file of the package, and prints one sentence."""

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


def test_what_runs_first_is_python_3_6() -> None:
    source = (ROOT / "hpc_train" / "__init__.py").read_text(encoding="utf-8")
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
