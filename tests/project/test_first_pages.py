"""The pages of a first hour: every command that they show works, with the output below it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import hpc_train
from tests.project.shown_commands import (
    ROOT,
    check_output,
    environment_with,
    printed,
    run_page,
    shown,
)

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
LAB_ENVIRONMENT = "/var/tmp/hpctrain-lab/env"  # noqa: S108


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return environment_with(tmp_path_factory.mktemp("bin"))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with the examples, and a script as a user has it."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copy(ROOT / "examples/book/train.py", tmp_path)
    return tmp_path


def test_the_glossary_has_the_words_of_reports_and_one_sentence_each() -> None:
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    terms = dict(re.findall(r"^### (.+)\n\n((?:.+\n)+)", text, re.MULTILINE))
    assert TERMS - set(terms) == set()
    assert [term for term, said in terms.items() if re.search(r"\. [A-Z]", said)] == []


def test_the_tutorial_is_short() -> None:
    assert 4 <= len(list(shown(TUTORIAL))) <= MOST_COMMANDS


@pytest.mark.slow
def test_the_tutorial_leads_to_a_figure(checkout: Path, environment: dict[str, str]) -> None:
    pytest.importorskip("torch")
    for line, output in shown(TUTORIAL):
        # The checkout is already installed for the tests.
        if line.startswith("pip "):
            continue
        text, code = printed(line, checkout, environment)
        assert code == 0, f"$ {line}\n{text}"
        check_output(output, text)
    assert (checkout / "figure.pdf").read_bytes().startswith(b"%PDF")
    assert "\\toprule" in (checkout / "table.tex").read_text(encoding="utf-8")


def test_the_page_for_log_readers_prints_what_it_shows(
    checkout: Path, environment: dict[str, str]
) -> None:
    assert run_page(DOCS / "log-readers.md", checkout, environment) >= 5


def test_the_example_in_python_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DOCS / "log-readers.md").read_text(encoding="utf-8")
    (argument,) = re.findall(r'`hpc_train\.collect\("([^"]+)"\)`', text)
    monkeypatch.chdir(ROOT)
    found = hpc_train.collect(argument)
    assert {"run", "metric", "value", "unit", "scope"} <= set(found.columns)
    assert len(found) > 0


@pytest.mark.slow
@pytest.mark.slurm
def test_the_pages_work_on_slurm(no_lab: None, checkout: Path, environment: dict[str, str]) -> None:
    """The tutorial's own lab is up while the commands for sysadmins run."""
    pytest.importorskip("torch")
    own = {**environment, "XDG_CONFIG_HOME": str(checkout / "config")}
    text = TUTORIAL.read_text(encoding="utf-8")
    up, *practice, down = re.findall(r"^# (hpctrain .*)$", text, re.MULTILINE)
    assert (up, down) == ("hpctrain lab up", "hpctrain lab down")
    try:
        report = run(up, *practice, folder=checkout, environment=own)
        assert "6 of 6 runs ok" in report
        site = [line for line, _ in shown(DOCS / "sysadmins.md")]
        loaded = [f". {LAB_ENVIRONMENT}; {line}" for line in site]
        assert "--nodes 2 --gpus 4 --plain" in site[-1]
        assert "--nodes=2" in run(*loaded, folder=checkout, environment=own)
    finally:
        run(down, folder=checkout, environment=own)


def run(*lines: str, folder: Path, environment: dict[str, str]) -> str:
    """Run command lines that all have to work; return what they printed."""
    said = ""
    for line in lines:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line],
            cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, f"$ {line}\n{done.stdout}\n{done.stderr}"
        said += done.stdout
    return said
