"""A page's console blocks -> commands, each with the output that the page shows below it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Shown(NamedTuple):
    """A command line, and the lines below it."""

    line: str
    output: tuple[str, ...]


def shown(page: Path) -> Iterator[Shown]:
    """Yield the commands of a page, in order."""
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, *output = part.splitlines()
            yield Shown(line, tuple(output))


def environment_with(programs: Path) -> dict[str, str]:
    """Return an environment in which `hpctrain` is this checkout's, installed or not."""
    command = programs / "hpctrain"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hpc_train "$@"\n')
    command.chmod(0o755)
    search = [str(programs), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    return {**os.environ, "PATH": os.pathsep.join(search), "PYTHONPATH": str(ROOT)}


def printed(line: str, folder: Path, environment: Mapping[str, str]) -> tuple[str, int]:
    """Run a command line; return what it printed, and its exit code."""
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    return done.stdout, done.returncode


def check_output(output: Sequence[str], text: str) -> None:
    """Check that a command prints what is shown; each `…` leaves out lines, or the rest of one."""
    lines = text.splitlines()
    for expected in (one for one in output if one != "…"):
        beginning = expected.removesuffix("…")
        at = [number for number, one in enumerate(lines) if one.startswith(beginning)]
        assert at, f"{expected}\n--- is not in what is left of\n{text}"
        assert lines[at[0]] == expected or beginning != expected, f"{expected}\n{lines[at[0]]}"
        lines = lines[at[0] + 1 :]


def run_page(page: Path, folder: Path, environment: Mapping[str, str]) -> int:
    """Run a page's commands in order, check their output, and return how many there were.

    `cat FILE` makes the file that it shows, unless it is there; `echo $?` is the last exit code.
    """
    last, count = 0, 0
    for line, output in shown(page):
        count += 1
        file = folder / line.removeprefix("cat ")
        if line == "echo $?":
            text = f"{last}\n"
        elif line.startswith("cat ") and not file.exists():
            file.write_text("".join(f"{one}\n" for one in output), encoding="utf-8")
            continue
        else:
            text, last = printed(line, folder, environment)
        assert "Traceback" not in text
        assert output or not last, f"$ {line}\n{text}"
        check_output(output, text)
    return count
