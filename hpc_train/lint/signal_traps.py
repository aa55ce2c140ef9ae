"""The traps of a script: the signals that they handle, and what they run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.lint.job_script import JobScript
from hpc_train.lint.shell.ast import Command
from hpc_train.lint.shell.commands import read_commands
from hpc_train.model.value import Value

_SIGNALS = re.compile(r"(?:SIG)?(USR1|USR2|TERM|INT|HUP|CONT)|10|12|15")
_AT_EXIT = frozenset(("EXIT", "0"))
_ENDING = frozenset(("TERM", "INT", "HUP", "15"))
_CLEANING = frozenset(
    """
    rm rmdir umount fusermount mv cp rsync kill pkill killall wait scancel ray docker podman
    echo printf date exit return set cd sleep sync : true trap popd module deactivate unset local
    export [ [[ test if fi then else
    """.split()
)


class Trap(Value, frozen=True, kw_only=True):
    """`trap ACTION SIGNALS`; a `cleanup` only ends processes and removes files."""

    command: Command
    action: str
    signals: tuple[str, ...]
    cleanup: bool

    @property
    def line(self) -> int:
        """The line of the command."""
        return self.command.line


def signal_traps(script: JobScript) -> Iterator[Trap]:
    """Yield the traps that handle a signal; '' ignores the signal, - restores the default."""
    for command in script.runs("trap"):
        texts = [word.text for word in command.words[1:] if word.text != "--"]
        signals = tuple(text for text in texts[1:] if _SIGNALS.fullmatch(text))
        if signals and texts[0] not in ("", "-", ":"):
            at_exit = bool(_AT_EXIT & set(texts[1:]))
            cleanup = _is_cleanup(texts[0], signals, script, at_exit=at_exit)
            yield Trap(command=command, action=texts[0], signals=signals, cleanup=cleanup)


def _is_cleanup(action: str, signals: tuple[str, ...], script: JobScript, *, at_exit: bool) -> bool:
    if not {signal.removeprefix("SIG") for signal in signals} <= _ENDING:
        return False
    programs = {command.program for command in _commands_of(action, script)} - {""}
    return bool(programs) and (at_exit or programs <= _CLEANING)


def _commands_of(action: str, script: JobScript) -> tuple[Command, ...]:
    """Return the commands of an action; if it is a function of the script, those of its body."""
    commands = read_commands(action).commands
    if len(commands) == 1 and len(commands[0].words) == 1:
        return _body(commands[0].program, script) or commands
    return commands


def _body(name: str, script: JobScript) -> tuple[Command, ...]:
    heads = [
        index
        for index, command in enumerate(script.commands)
        if [word.text for word in command.words] in ([name], ["function", name])
        and ("(" in (command.ending, *command.redirects) or command.words[0].text == "function")
    ]
    body: list[Command] = []
    for command in script.commands[heads[0] + 1 :] if heads else ():
        if body and "}" in command.keywords:
            break
        body.append(command)
    return tuple(body)
