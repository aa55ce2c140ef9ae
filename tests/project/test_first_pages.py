"""The pages of a first hour: every command that they show works, with the output below it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hpc_train
from tests.project.shown_commands import ROOT, run_commands, shown
from tests.project.tour import ON_ONE_MACHINE, Way, desk

DOCS = ROOT / "docs"
TUTORIAL = DOCS / "tutorial.md"
MOST_COMMANDS = 8
TERMS = {
    *(
        "node",
        "task",
        "rank",
        "local rank",
        "world size",
        "rendezvous",
        "site profile",
        "transport",
    ),
    *("job", "run", "study", "axis", "point", "repetition", "series", "record", "scope", "gate"),
    *("step", "strong scaling", "weak scaling", "baseline", "speedup", "efficiency", "interval"),
    *("MFU", "algbw", "busbw"),
}


def test_the_glossary_has_the_words_of_reports_and_one_sentence_each() -> None:
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    terms = dict(re.findall(r"^### (.+)\n\n((?:.+\n)+)", text, re.MULTILINE))
    assert TERMS - set(terms) == set()
    assert [term for term, said in terms.items() if re.search(r"\. [A-Z]", said)] == []


def test_the_tutorial_is_short() -> None:
    assert 4 <= len(list(shown(TUTORIAL))) <= MOST_COMMANDS


@pytest.mark.slow
@pytest.mark.parametrize("way", ON_ONE_MACHINE, ids=lambda way: str(way.page.stem))
def test_each_command_prints_what_is_shown(way: Way, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    environment = {**desk(tmp_path), "HPCTRAIN_SITE": "local"}
    assert run_commands(way.commands(), tmp_path, environment) >= 5
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")
    if way.page.stem == "tutorial":
        assert "\\toprule" in (tmp_path / "table.tex").read_text(encoding="utf-8")


def test_the_example_in_python_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DOCS / "log-readers.md").read_text(encoding="utf-8")
    (argument,) = re.findall(r'`hpc_train\.collect\("([^"]+)"\)`', text)
    monkeypatch.chdir(ROOT)
    found = hpc_train.collect(argument)
    assert {"run", "metric", "value", "unit", "scope"} <= set(found.columns)
    assert len(found) > 0
