"""Rules on commands over several lines: what ends them before their last line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.lint.rule import Edit, RuleHit, Subject, fixable, rule
from hpc_train.lint.shell.ast import Command

_CONTINUED = re.compile(r"(?<!\\)(?:\\\\)*\\$")
_CUT = re.compile(r"(?<!\\)(?:\\\\)*\\[ \t]+(#.*)?$")
# A blank is no argument of these.
_STARTERS = (
    "srun",
    "mpirun",
    "mpiexec",
    "torchrun",
    "python",
    "python3",
    "accelerate",
    "deepspeed",
)


def _commands(subject: Subject) -> tuple[Command, ...]:
    return (*subject.script.commands, *subject.script.task_commands)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


@fixable
@rule(
    "HT415",
    "error",
    "whitespace after a backslash at the end of a line",
    why="The backslash then protects the whitespace instead of the line's end: the command ends "
    "here, and the next line runs as a command of its own.",
    advice="remove the whitespace after the backslash",
)
def blank_behind_backslash(subject: Subject) -> Iterator[RuleHit]:
    lines = subject.script.lines
    for command in _commands(subject):
        number = command.last_line
        cut = _CUT.search(lines[number - 1]) if 0 < number < len(lines) else None
        if cut is None or not command.words[-1:] or not _continues(command, lines):
            continue
        if _protects_blank(command):
            line = lines[number - 1]
            edit = None if cut[1] else Edit(line=number, before=line, after=line.rstrip())
            what = "a comment" if cut[1] else "whitespace"
            message = f"{what} after the backslash: line {number + 1} is a command of its own"
            yield RuleHit(line=number, message=message, edit=edit)


def _protects_blank(command: Command) -> bool:
    """Whether the last backslash is before a blank; a # directly behind that begins no comment."""
    before_hash = any(
        word.line == command.last_line and re.match(r"\\[ \t]#", word.raw) for word in command.words
    )
    return before_hash or command.words[-1].raw.endswith(("\\ ", "\\\t"))


def _continues(command: Command, lines: tuple[str, ...]) -> bool:
    """Whether the next line looks like the rest of a command: an option, or further indented."""
    following = lines[command.last_line]
    text = following.strip()
    deeper = _indent(following) > _indent(lines[command.line - 1])
    rest = deeper or text.startswith("-") or command.program in _STARTERS
    return bool(text) and not text.startswith("#") and rest


@rule(
    "HT416",
    "error",
    "comment inside a continued command",
    why="A comment ends at its line's end, also with a backslash there, and so does the command: "
    "the lines below the comment run as a command of their own.",
    advice="move the comment above the command, and delete the option that is not wanted",
)
def comment_inside(subject: Subject) -> Iterator[RuleHit]:
    lines = subject.script.lines
    for command in _commands(subject):
        first = command.line - 1
        comment = first - 1
        while comment >= 0 and lines[comment].lstrip().startswith("#"):
            comment -= 1
        if comment < 0 or comment == first - 1 or not _CONTINUED.search(lines[comment]):
            continue
        if lines[comment].lstrip().startswith("#") or not _is_rest(command, lines, comment + 1):
            continue
        message = f"the command ends here: line {command.line} is a command of its own"
        yield RuleHit(line=comment + 2, message=message)


def _is_rest(command: Command, lines: tuple[str, ...], comment: int) -> bool:
    """Whether a command below a comment is meant to belong to the command above it."""
    program = command.words[0].text if command.words else ""
    text = lines[command.line - 1]
    if not text.lstrip().startswith(program or " "):
        return False
    if program.startswith("-"):
        return True
    begin = _begin(lines, comment - 1)
    aligned = _indent(text) == _indent(lines[comment]) > _indent(begin)
    starts = begin.split()[:1] == ["srun"] and _indent(text) > _indent(begin)
    return starts or (aligned and bool(_CONTINUED.search(lines[comment])))


def _begin(lines: tuple[str, ...], number: int) -> str:
    """Return the first line of a continued command."""
    while number > 0 and _CONTINUED.search(lines[number - 1]):
        number -= 1
    return lines[number]
