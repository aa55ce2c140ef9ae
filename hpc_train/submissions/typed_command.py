"""The command line of another launcher -> the options of hpctrain that mean the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.base.errors import SpecError
from hpc_train.base.registry import BUILT_IN
from hpc_train.plans.launchers.base import find_launcher

_PYTHON = re.compile(r"python[0-9.]*")
_FLAGS = ("standalone", "multi-gpu")


def in_our_words(line: Sequence[str], known: Sequence[str]) -> list[str] | None:
    """Return `torchrun --nproc_per_node 4 train.py` as options and FILE; None if it is a file.

    Raises:
        SpecError: a command line without a script.
    """
    if Path(line[0]).exists() or not line[0].strip():
        return None
    words, ours = [*line], []
    if is_quoted := " " in line[0]:
        words, ours = line[0].split(), [*line[1:]]
    if words[1:2] == ["-m"] and words[2:] and (launcher := _launcher_of(words[2])):
        words = [launcher, *words[3:]]
    options: list[str] = []
    if words[0] in BUILT_IN["launchers"]:
        at = next(
            (
                n
                for n, word in enumerate(words)
                if n
                and (bool(_PYTHON.fullmatch(word)) or word.endswith(".py") or Path(word).is_file())
            ),
            len(words),
        )
        options = ["--launcher", words[0], *_options(words[0], words[1:at], known)]
        words = words[at:]
    elif not _PYTHON.fullmatch(words[0]) and not (is_quoted and words[0].endswith(".py")):
        return None
    if words and _PYTHON.fullmatch(words[0]):
        at = next((n for n, word in enumerate(words) if n and word not in ("-u", "-O")), len(words))
        words = words[at:]
    if not words or words[0].startswith("-"):
        raise SpecError(
            f"{' '.join(line)[:80]}: names no script; a module is the command of a job file: "
            "command: [python, -m, MODULE]"
        )
    dashes = ["--"] if is_quoted and words[1:] else []
    return [*options, *ours, words[0], *dashes, *words[1:]]


def _launcher_of(module: str) -> str:
    """Return the launcher that `python -m MODULE` starts, or nothing."""
    every = (find_launcher(name) for name in BUILT_IN["launchers"])
    pairs = ((one.name, program) for one in every for program in one.programs[-1:])
    found = (name for name, program in pairs if program.goes_by(module))
    return next(found, "")


def _options(launcher: str, words: Sequence[str], known: Sequence[str]) -> Iterator[str]:
    """Yield the options of a launcher as those of hpctrain; others become `launcher_args`."""
    others, left, typed = [], list(words), find_launcher(launcher).typed
    while left:
        option, equals, value = left.pop(0).partition("=")
        name = option.lstrip("-").replace("_", "-")
        if not equals and left and not left[0].startswith("-") and name not in _FLAGS:
            value = left.pop(0)
        meant = typed.get(name, option if option in known else None)
        if meant:
            yield from (meant, value) if value else (meant,)
        elif meant is None and option.startswith("-"):
            others.append(f"{option}={value}" if value else option)
    if others:
        yield from ("--set", f"launcher_args={json.dumps(others)}")
