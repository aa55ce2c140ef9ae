"""Pages on reports: every key, state, flag, file and option stands there; every example works."""

from __future__ import annotations

import inspect
import json
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest

from hpc_train.cli.compare import compare
from hpc_train.cli.report import report
from hpc_train.model.expected_study import EXCLUDED, MISSING
from hpc_train.model.log_selection import Search
from hpc_train.model.quality_flag import FlagCode
from hpc_train.model.submission import JobState
from hpc_train.pipeline.report import build_report
from hpc_train.pipeline.report_inputs import report_inputs
from hpc_train.pipeline.write_report import FORMAT_OF, TEXTS, TIDY, render_report
from hpc_train.registry import BUILT_IN
from hpc_train.reports.caveats import MEANING
from hpc_train.reports.figure_files import IMAGES
from hpc_train.reports.figures import FIGURES
from hpc_train.tables.runs import UNPARSED
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


@cache
def study_json() -> dict[str, Any]:
    found = report_inputs([str(STUDY)], Search(root=ROOT / "none"))
    loaded: dict[str, Any] = json.loads(render_report(build_report(found), "json"))
    return loaded


def shown_as() -> dict[str, str]:
    """Return in which table of text each key is, by the page."""
    return {key: re.split(r"[ ,]", row[1])[0] for row in table("Columns") for key in code(row[0])}


def test_every_key_of_a_point_is_explained_and_no_other() -> None:
    assert sorted(shown_as()) == sorted(study_json()["rows"][0])


def test_the_keys_of_the_json_are_on_the_page() -> None:
    text, made = section("JSON"), study_json()
    block = "```" + text.split("```")[1] + "```"
    top = re.findall(r'"(\w+)": ', block)
    assert sorted({*top} - {"forecast", "target"}) == sorted(made)
    inner = {*re.findall(r'"(\w+)"', block)}
    assert inner >= {*made["conditions"], *made["gates"][0]}
    assert f'"schema": {made["schema"]}' in block
    nested = {key for key, value in made["rows"][0].items() if isinstance(value, dict)}
    assert nested - set(code(text.replace(block, ""))) == set()
    known = set(shown_as()) | {key for row in table("JSON") for key in code(row[0])}
    assert {key for key in made["runs"][0] if not key.startswith("axis.")} - known == set()


def test_every_state_is_explained() -> None:
    states = {state.value for state in JobState} | {EXCLUDED, MISSING, UNPARSED}
    assert {key for row in table("Completeness") for key in code(row[0])} == states


def test_every_flag_is_explained_on_the_page_and_in_words() -> None:
    listed = {key for row in table("Flags") for key in code(row[0])}
    sources = [*(ROOT / "hpc_train" / "tables").glob("*.py"), Path(inspect.getfile(FlagCode))]
    texts = "".join(path.read_text(encoding="utf-8") for path in sources)
    raised = {code.value for code in FlagCode if f"FlagCode.{code.name}" in texts}
    assert listed == {code.value for code in MEANING} == {code.value for code in FlagCode} == raised


def test_every_figure_is_explained() -> None:
    assert [key for row in table("Figures") for key in code(row[0])] == list(FIGURES)


def test_every_format_and_file_is_named() -> None:
    text = section("Formats and files")
    formats = {f"`{name}`" for name in BUILT_IN["formats"]}
    endings = {*FORMAT_OF, *IMAGES, TIDY} - {".md"}
    names = {*TEXTS, "tidy.parquet", *formats, *endings}
    assert [name for name in sorted(names) if name not in text] == []


@pytest.mark.parametrize(("command", "page"), [(report, READING), (compare, "compare.md")])
def test_every_option_is_on_its_page(command: click.Command, page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    options = [o for param in command.params if isinstance(param, click.Option) for o in param.opts]
    assert [option for option in options if not re.search(rf"`{option}\b", text)] == []


@pytest.mark.process
@pytest.mark.parametrize("page", ["foreign-results.md", "compare.md"])
def test_examples_print_what_is_shown(page: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copytree(STUDY, tmp_path / "results" / "digits-strong")
    assert run_page(ROOT / "docs" / page, tmp_path, preloaded_environment(tmp_path / "bin")) >= 8
