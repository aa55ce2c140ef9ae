"""docs/man/hpctrain.1 is what the commands say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


# Click keeps the options of help that a command was asked for first.
@pytest.mark.process
def test_the_page_is_current() -> None:
    made = subprocess.run(
        [sys.executable, ROOT / "docs/man/man_page.py"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (ROOT / "docs/man/hpctrain.1").read_text(encoding="utf-8") == made.stdout, "make man"
