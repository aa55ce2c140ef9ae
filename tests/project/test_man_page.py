"""docs/man/hpctrain.1: as the commands are, complete, and without a warning of the formatter."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.cli.commands import COMMANDS
from hpc_train.cli.site import site

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/man/hpctrain.1"


def test_the_page_is_current() -> None:
    made = subprocess.run(
        [sys.executable, ROOT / "docs/man/man_page.py"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert PAGE.read_text(encoding="utf-8") == made.stdout, "make man"


def test_each_command_is_a_section() -> None:
    sections = re.findall(r'^\.SS "hpctrain ([a-z ]+)', PAGE.read_text(encoding="utf-8"), re.M)
    named = {section.strip() for section in sections}
    assert {*COMMANDS, *(f"site {name}" for name in site.commands)} <= named


def formatted(page: Path) -> tuple[str, str]:
    """Return a page as text of 80 columns, and the warnings of the formatter."""
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("needs man and groff")
    done = subprocess.run(
        ["man", "--warnings", "-l", str(page)],
        env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MAN_KEEP_FORMATTING": ""},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout, done.stderr


def test_the_formatter_has_no_warning() -> None:
    text, warnings = formatted(PAGE)
    assert warnings == ""
    assert "--tasks-per-node TEXT" in text
    assert "hpctrain submit train.py --tasks-per-node 2 --wait -- --epochs 3" in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_wrong_page_has_a_warning(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.1"
    wrong.write_text(".TH WRONG 1\n.SH NAME\n\\fXwrong\\fR\n.XX unknown\n", encoding="utf-8")
    assert "warning" in formatted(wrong)[1]
