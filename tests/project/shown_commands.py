"""A page's console blocks -> commands, each with the output that the page shows below it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.cli.preloaded import preloaded

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
LEFT_OUT = "…"
MOST_PRINTED = 25


class Shown(NamedTuple):
    """A command line, and the lines below it."""

    line: str
    output: tuple[str, ...]


class Typed(NamedTuple):
    """A command line that was run; `difference` says how it differs from the page, if it does."""

    line: str
    difference: str


def shown(page: Path, prompt: str = "$") -> Iterator[Shown]:
    """Yield the commands of a page, in order; those of root have the prompt `#`."""
    start = re.compile(rf"^{re.escape(prompt)} ", re.MULTILINE)
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for part in start.split(block)[1:]:
            line, *output = part.replace("\\\n", " ").splitlines()
            yield Shown(line, tuple(output))


def preloaded_environment(programs: Path) -> dict[str, str]:
    """Return an environment in which `hpctrain` is this checkout's, with its libraries imported."""
    asks = ROOT / "tests/cli/ask_preloaded.py"
    return environment_with(programs, f'-I -S "{asks}" "{preloaded().socket}"')


def environment_with(programs: Path, options: str = "-m hpc_train") -> dict[str, str]:
    """Return an environment in which `hpctrain` is Python with these options."""
    command = programs / "hpctrain"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {options} "$@"\n')
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
        timeout=600,
    )
    return done.stdout, done.returncode


def difference(output: Sequence[str], text: str) -> str:
    """Return how a text differs from what is shown; empty if it does not.

    A line `…` leaves out any number of lines, and `…` at the end of a line the rest of it.
    """
    *pieces, last = _pieces(output)
    left = text.splitlines()
    for number, piece in enumerate(pieces):
        starts = range(1 if number == 0 else len(left) - len(piece) + 1)
        at = next((at for at in starts if _begins(left[at:], piece)), None)
        if at is None:
            return _diff(piece, left)
        left = left[at + len(piece) :]
    end = left[max(0, len(left) - len(last)) :] if pieces else left
    return "" if len(end) == len(last) and _begins(end, last) else _diff(last, left)


def _pieces(output: Sequence[str]) -> list[list[str]]:
    """Return the lines between those that are left out."""
    pieces: list[list[str]] = [[]]
    for line in output:
        if line == LEFT_OUT:
            pieces.append([])
        else:
            pieces[-1].append(line)
    return pieces


def _begins(lines: Sequence[str], piece: Sequence[str]) -> bool:
    return len(lines) >= len(piece) and all(map(_is_line, piece, lines))


def _is_line(expected: str, line: str) -> bool:
    if expected.endswith(LEFT_OUT):
        return line.startswith(expected.removesuffix(LEFT_OUT))
    return line == expected


def _diff(piece: Sequence[str], left: Sequence[str]) -> str:
    lines = [*(f"- {line}" for line in piece), *(f"+ {line}" for line in left[:MOST_PRINTED])]
    more = len(left) - MOST_PRINTED
    return "\n".join([*lines, *([f"+ … {more} more lines"] if more > 0 else [])] or ["+"])


def type_page(
    commands: Iterable[Shown], folder: Path, environment: Mapping[str, str], before: str = ""
) -> Iterator[Typed]:
    """Run a page's commands in order, after the shell code `before`, and yield each when it ended.

    `cat FILE` makes the file that it shows, unless it is there; `echo $?` is the last exit code,
    which is 0 for a command below which nothing is shown.
    """
    last = 0
    for line, output in commands:
        file = folder / line.removeprefix("cat ")
        if line.startswith("cat ") and not file.exists():
            file.write_text("".join(f"{one}\n" for one in output), encoding="utf-8")
            yield Typed(line, "")
            continue
        if line == "echo $?":
            text = f"{last}\n"
        else:
            text, last = printed(before + line, folder, environment)
        found = difference(output, text) if output or text else ""
        if "Traceback" in text or (last and not output):
            found = found or _diff((), [*text.splitlines(), f"exit code {last}"])
        yield Typed(line, found)


def check_output(output: Sequence[str], text: str) -> None:
    """Check that a command prints what is shown."""
    found = difference(output, text)
    assert not found, found


def run_page(page: Path, folder: Path, environment: Mapping[str, str]) -> int:
    """Run a page's commands in order, check their output, and return how many there were."""
    return run_commands(shown(page), folder, environment)


def run_commands(commands: Iterable[Shown], folder: Path, environment: Mapping[str, str]) -> int:
    """Run commands in order, check their output, and return how many there were."""
    typed = list(type_page(commands, folder, environment))
    wrong = [f"$ {one.line}\n{one.difference}" for one in typed if one.difference]
    assert not wrong, "\n".join(wrong)
    return len(typed)
