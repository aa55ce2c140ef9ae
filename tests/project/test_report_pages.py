"""Pages on reports: every key, state, flag, file and option stands there; every example works."""

from __future__ import annotations

import inspect
import re
import shutil
from pathlib import Path

import pytest

from hpc_train.model.quality_flag import FlagCode
from hpc_train.reports.caveats import MEANING
from tests.project.shown_commands import ROOT, preloaded_environment, run_page

READING = ROOT / "docs" / "reading-a-report.md"
STUDY = ROOT / "results" / "studies" / "digits-two-cores"


def section(name: str) -> str:
    text = READING.read_text(encoding="utf-8")
    found: list[tuple[str, str]] = re.findall(
        r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
    )
    return dict(found)[name]


def table(name: str) -> list[list[str]]:
    """Return the cells of the tables of a section, without headings."""
    rows = re.findall(r"^\| (`.+) \|$", section(name), re.MULTILINE)
    return [row.split(" | ") for row in rows]


def code(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_every_flag_is_explained_on_the_page_and_in_words() -> None:
    listed = {key for row in table("Flags") for key in code(row[0])}
    sources = [*(ROOT / "hpc_train" / "tables").glob("*.py"), Path(inspect.getfile(FlagCode))]
    texts = "".join(path.read_text(encoding="utf-8") for path in sources)
    raised = {code.value for code in FlagCode if f"FlagCode.{code.name}" in texts}
    assert listed == {code.value for code in MEANING} == {code.value for code in FlagCode} == raised


@pytest.mark.process
@pytest.mark.parametrize("page", ["foreign-results.md", "compare.md"])
def test_examples_print_what_is_shown(page: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copytree(STUDY, tmp_path / "results" / "digits-strong")
    assert run_page(ROOT / "docs" / page, tmp_path, preloaded_environment(tmp_path / "bin")) >= 8
