"""README: every command that it shows works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hpc_train

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
TARGET = re.compile(r"^([a-z]+):", re.MULTILINE)


def commands(program: str, prompt: str = "$") -> list[str]:
    """Return the shown command lines of a program, in order, continuation lines joined.

    Those of root have the prompt `#`.
    """
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = "\n".join(BLOCK.findall(text)).replace("\\\n", " ").splitlines()
    return [line[2:].strip() for line in lines if line.startswith(f"{prompt} {program}")]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an environment in which `hpctrain` is this checkout's, installed or not."""
    programs = tmp_path_factory.mktemp("bin")
    command = programs / "hpctrain"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hpc_train "$@"\n')
    command.chmod(0o755)
    search = [str(programs), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    return {**os.environ, "PATH": os.pathsep.join(search), "PYTHONPATH": str(ROOT)}


def test_readme_shows_commands() -> None:
    assert commands("hpctrain ")
    assert commands("make")


def test_make_targets_exist() -> None:
    targets = set(TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    named = {word for line in commands("make") for word in line.split()[1:] if "=" not in word}
    assert named - targets == set()


def test_the_packages_are_those_that_make_test_installs() -> None:
    (line,) = commands("apt-get", "#")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    missing = [name for name in line.split()[2:] if f":{name}" not in makefile]
    assert missing == []


def shown(program: str) -> list[tuple[str, list[str]]]:
    """Return the command lines of a program below which output is shown, and that output."""
    found: list[tuple[str, list[str]]] = []
    for block in BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, *output = part.splitlines()
            if output and line.startswith(program):
                found.append((line, output))
    return found


@pytest.mark.parametrize(("line", "output"), shown("hpctrain "), ids=lambda part: str(part)[:30])
def test_output_is_what_is_printed(
    line: str, output: list[str], tmp_path: Path, environment: dict[str, str]
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    both = subprocess.run(
        ["bash", "-c", f"{line} 2>&1"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    printed = both.stdout.splitlines()
    # Each `…` leaves out lines, or the rest of one; all else stands there, in this order.
    for expected in (one for one in output if one != "…"):
        beginning = expected.removesuffix("…")
        at = [number for number, one in enumerate(printed) if one.startswith(beginning)]
        assert at, expected
        assert printed[at[0]] == expected or beginning != expected
        printed = printed[at[0] + 1 :]


def test_output_of_three_questions_is_shown() -> None:
    assert {line.split()[1] for line, _ in shown("hpctrain ")} >= {"collect", "report", "diagnose"}


@pytest.mark.slow
def test_commands_run_in_order(tmp_path: Path, environment: dict[str, str]) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    run_all(commands("hpctrain "), tmp_path, environment)


@pytest.mark.slow
@pytest.mark.slurm
def test_roots_commands_run_in_order(
    no_lab: None, tmp_path: Path, environment: dict[str, str]
) -> None:
    pytest.importorskip("torch")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    own = {**environment, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    lines = commands("hpctrain ", "#")
    assert lines[0] == "hpctrain lab up"
    assert lines[-1] == "hpctrain lab down"
    said = run_all(lines, tmp_path, own)
    assert "9 of 9 runs ok" in said


def run_all(lines: list[str], folder: Path, environment: dict[str, str]) -> str:
    """Run command lines that all have to work; return what they printed."""
    said = ""
    for line in lines:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, f"$ {line}\n{done.stdout}\n{done.stderr}"
        said += done.stdout
    return said


def test_the_example_in_python_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    (argument,) = re.findall(r'`hpc_train\.collect\("([^"]+)"\)`', (ROOT / "README.md").read_text())
    monkeypatch.chdir(ROOT)
    found = hpc_train.collect(argument)
    assert {"run", "metric", "value", "unit", "scope"} <= set(found.columns)
    assert len(found) > 0
