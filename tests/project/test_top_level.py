"""What lies at the top of the checkout: a new entry there is a decision, and no accident."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = {
    *(".ci", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md"),
    *("constraints.txt", "docs", "examples", "hpc_train", "pyproject.toml", "results"),
    *("site_profiles", "templates", "tests"),
}


def test_only_these_are_tracked_at_the_top() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a checkout of git")
    names = {name.partition("/")[0] for name in listed.stdout.decode().split("\0") if name}
    assert names == ALLOWED
