"""`hpctrain help`: the pages of the documentation, wherever hpctrain is installed."""

import re
from pathlib import Path

import pytest

from hpc_train.base.data_folders import page_text
from tests.cli.conftest import Hpctrain

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"docs/([\w-]+)\.md|hpctrain help (?!lists|docs/)([a-z-]{4,})")


def test_the_pages_are_listed_with_their_titles(hpctrain: Hpctrain) -> None:
    listed = hpctrain("help").stdout
    for path in (ROOT / "docs").glob("*.md"):
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        assert re.search(rf"^{path.stem} +{re.escape(title)}$", listed, re.MULTILINE), path.name


@pytest.mark.parametrize("word", ["files", "docs/files.md", "files.md", "docs/files.md#units"])
def test_a_page_is_printed_as_it_is_written(hpctrain: Hpctrain, word: str) -> None:
    assert hpctrain("help", word).stdout == (ROOT / "docs/files.md").read_text(encoding="utf-8")


def test_a_section_is_printed_alone(hpctrain: Hpctrain) -> None:
    text = hpctrain("help", "events").stdout
    assert text.startswith("## Events: ")
    assert text.count("\n## ") == 0
    assert text in (ROOT / "docs/logs-and-tables.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("word", ["fiels", "../README.md/fiels", "/etc/passwd/fiels"])
def test_an_unknown_page_gets_the_nearest(hpctrain: Hpctrain, word: str) -> None:
    refused = hpctrain("help", word)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "did you mean 'files'" in refused.stderr


def test_each_page_that_a_message_names_exists() -> None:
    found = {
        match.groups()
        for path in (ROOT / "hpc_train").rglob("*.py")
        for match in NAMED.finditer(path.read_text(encoding="utf-8"))
    }
    assert len(found) > 5
    for names in found:
        (page,) = filter(None, names)
        assert (ROOT / f"docs/{page}.md").is_file() or page_text(page).startswith("## "), page
