"""The pages of a first hour: every command that they show works, with the output below it."""

import re
from pathlib import Path

import pytest

import hpc_train
from tests.project.shown_commands import ROOT, run_commands
from tests.project.tour import ON_ONE_MACHINE, Way, desk

DOCS = ROOT / "docs"


@pytest.mark.process
@pytest.mark.torch
@pytest.mark.parametrize("way", ON_ONE_MACHINE, ids=lambda way: str(way.page.stem))
def test_each_command_prints_what_is_shown(way: Way, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    environment = {**desk(tmp_path), "HPCTRAIN_SITE": "local"}
    assert run_commands(way.commands(), tmp_path, environment) >= 5
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")
    if way.page.stem == "tutorial":
        assert "\\toprule" in (tmp_path / "table.tex").read_text(encoding="utf-8")


def test_the_example_in_python_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DOCS / "logs-and-tables.md").read_text(encoding="utf-8")
    (argument,) = re.findall(r'`hpc_train\.collect\("([^"]+)"\)`', text)
    monkeypatch.chdir(ROOT)
    found = hpc_train.collect(argument)
    assert {"run", "metric", "value", "unit", "scope"} <= set(found.columns)
    assert len(found) > 0
