"""README: every command that it shows works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
TARGET = re.compile(r"^([a-z]+):", re.MULTILINE)


def commands(program: str) -> list[str]:
    """Return the shown command lines of a program, in order, continuation lines joined."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = "\n".join(BLOCK.findall(text)).replace("\\\n", " ").splitlines()
    return [line[2:].strip() for line in lines if line.startswith(f"$ {program}")]


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


@pytest.mark.slow
def test_commands_run_in_order(tmp_path: Path, environment: dict[str, str]) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for line in commands("hpctrain "):
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, f"$ {line}\n{done.stdout}\n{done.stderr}"
