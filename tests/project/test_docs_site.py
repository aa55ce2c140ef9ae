"""The documentation as a site: links, commands, and nothing that is loaded from elsewhere."""

from __future__ import annotations

import html
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hpc_train
from hpc_train.cli.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
LOADED = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=\"?(?:https?:)?//[^>]*>")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site; a link or an anchor that does not exist is an error."""
    folder = tmp_path_factory.mktemp("site")
    words = ("build", "--strict", "--quiet", "-f", "docs/mkdocs/mkdocs.yml", "-d", str(folder))
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", *words],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_each_page_is_in_the_site_and_in_the_list_of_pages(site: Path) -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert {path.stem for path in site.glob("*.html")} - {"404"} == pages
    listed = re.findall(r"\]\(([\w-]+)\.md\)", (ROOT / "docs/index.md").read_text("utf-8"))
    assert set(listed) == pages - {"index"}


def test_the_page_of_commands_has_each_command(site: Path) -> None:
    page = (site / "commands.html").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f"<code>hpctrain {name}</code>" in page
        assert f"Usage: hpctrain {name}" in page


def test_the_page_of_python_has_each_docstring(site: Path) -> None:
    page = (site / "python.html").read_text(encoding="utf-8")
    text = html.unescape(re.sub(r"<[^<>]+>", "", page))
    for name in hpc_train.__all__:
        thing = getattr(hpc_train, name)
        if callable(thing):
            assert f"<code>hpc_train.{name}</code>" in page
            assert (inspect.getdoc(thing) or name).splitlines()[0].replace("`", "") in text
    assert "submit(\n    file: AnyPath,\n" in text
    assert "wait(self, timeout: float | None = None) -> str" in text


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for path in site.glob("*.html"):
        found = LOADED.findall(path.read_text(encoding="utf-8"))
        assert [one for one in found if "rel=canonical" not in one] == [], path.name


def test_blocks_are_blocks(site: Path) -> None:
    for path in site.glob("*.html"):
        text = re.sub(r"<(pre|code).*?</\1>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert "```" not in text, path.name


def test_the_site_can_be_searched(site: Path) -> None:
    assert "speedup" in (site / "search/search_index.json").read_text(encoding="utf-8")
