"""Calls of a script's own functions that run their arguments: `run srun …` is a call of srun."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from msgspec.structs import replace

from hpc_train.lint.shell.ast import Command


def without_function_calls(commands: tuple[Command, ...]) -> tuple[Command, ...]:
    """Replace each call of such a function by the command that it runs, in the background if so."""
    endings = dict(_runners(commands))
    return tuple(_run(command, endings) for command in commands) if endings else commands


def _runners(commands: Iterable[Command]) -> Iterator[tuple[str, str]]:
    """Yield the functions whose body has the command `"$@"`, and the operator after it."""
    name = ""
    for command, following in pairwise(commands):
        if command.program == "function":
            name = command.words[1].text if len(command.words) > 1 else ""
        elif len(command.words) == 1 and command.ending == "(":
            name = command.program
        if following.words and following.words[0].raw == '"$@"' and name:
            yield name, following.ending


def _run(command: Command, endings: Mapping[str, str]) -> Command:
    ending = endings.get(command.program)
    if ending is None or len(command.words) == 1:
        return command
    words = command.words[1:]
    ending = "&" if ending == "&" else command.ending
    return replace(command, words=words, line=words[0].line, ending=ending)
