"""`hpctrain help`: the pages of the documentation, wherever hpctrain is installed."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Hpctrain

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"docs/([\w-]+)\.md|hpctrain help (?!lists|docs/)([a-z-]{4,})")


def test_the_pages_are_listed_with_their_titles(hpctrain: Hpctrain) -> None:
    listed = hpctrain("help").stdout
    for path in (ROOT / "docs").glob("*.md"):
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        assert re.search(rf"^{path.stem} +{re.escape(title)}$", listed, re.MULTILINE), path.name


@pytest.mark.parametrize(
    "word", ["events", "docs/events.md", "events.md", "docs/events.md#collect"]
)
def test_a_page_is_printed_as_it_is_written(hpctrain: Hpctrain, word: str) -> None:
    assert hpctrain("help", word).stdout == (ROOT / "docs/events.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("word", ["evnets", "../README.md/evnets", "/etc/passwd/evnets"])
def test_an_unknown_page_gets_the_nearest(hpctrain: Hpctrain, word: str) -> None:
    refused = hpctrain("help", word)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "did you mean 'events'" in refused.stderr


@pytest.mark.process
def test_on_a_terminal_it_is_formatted() -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "hpc_train", "help", "index"]
    environment = {**os.environ, "PAGER": "cat", "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, stdout=theirs, stdin=subprocess.DEVNULL, env=environment):
        os.close(theirs)
        parts = []
        try:
            while part := os.read(ours, 4096):
                parts.append(part)
        except OSError:
            # The process has ended.
            os.close(ours)
    text = b"".join(parts).decode()
    assert "Where to begin" in text
    assert "## Where" not in text


def test_each_page_that_a_message_names_exists() -> None:
    found = {
        match.groups()
        for path in (ROOT / "hpc_train").rglob("*.py")
        for match in NAMED.finditer(path.read_text(encoding="utf-8"))
    }
    assert len(found) > 5
    for names in found:
        (page,) = filter(None, names)
        assert (ROOT / f"docs/{page}.md").is_file(), page
