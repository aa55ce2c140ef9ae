"""docs/track.md: its example works, and it names every option."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.cli.track import add, show
from tests.project.shown_commands import ROOT, preloaded_environment, run_page

PAGE = ROOT / "docs" / "track.md"


def test_the_example_prints_what_is_shown(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    desk = tmp_path / "desk"
    desk.mkdir()
    environment = {**preloaded_environment(programs), "COLUMNS": "100"}
    environment.pop("HPCTRAIN_HISTORY", None)
    assert run_page(PAGE, desk, environment) == 4


@pytest.mark.parametrize("command", [add, show], ids=["add", "show"])
def test_each_option_is_on_the_page(command: object) -> None:
    text = PAGE.read_text(encoding="utf-8")
    # Options of every command that reads results, which docs/reading-a-report.md explains.
    shared = {"--results", "--parser", "--points", "--format", "--output"}
    names = {name for one in command.params for name in one.opts if name.startswith("--")}  # type: ignore[attr-defined]
    assert [name for name in sorted(names - shared) if f"`{name}" not in text] == []
