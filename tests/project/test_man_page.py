"""docs/man/hpctrain.1 is what the commands say."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "docs/man/man_page.py"), run_name="__main__")
    page = (ROOT / "docs/man/hpctrain.1").read_text(encoding="utf-8")
    assert page == capsys.readouterr().out, "make man"
