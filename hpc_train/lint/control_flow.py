"""The blocks around each command: which loops repeat it, and which conditions it depends on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from hpc_train.lint.shell.ast import Command
from hpc_train.model.value import Value

Kind = Literal["loop", "branch"]
_LOOPS = frozenset(("while", "until"))
_BRANCHES = frozenset(("then", "else", "elif"))


class Block(Value, frozen=True, kw_only=True):
    """A loop, or a branch of `if`, `case`, `&&` or `||`; `condition` is the text of its test."""

    kind: Kind
    condition: str = ""


def repeats(blocks: Blocks) -> bool:
    """Whether a loop may run a command more than once."""
    return any(block.kind == "loop" for block in blocks)


def depends(blocks: Blocks) -> bool:
    """Whether a condition decides if a command runs."""
    return any(block.kind == "branch" for block in blocks)


class _Open:
    """A compound command that has not ended, with the blocks that it has opened so far."""

    def __init__(self, kind: Kind, end: str, condition: str = "") -> None:
        self.kind: Kind = kind
        self.end = end
        self.condition = condition
        self.entered = kind == "loop" or end == "esac"


Blocks = tuple[Block, ...]


def read_blocks(commands: Iterable[Command]) -> Iterator[tuple[Command, Blocks]]:
    """Yield each command with the blocks around it, outermost first."""
    opened: list[_Open] = []
    guard = ""
    inner: list[Command] = []
    for command in commands:
        # The commands of a substitution come before the command around it.
        if command.inside:
            inner.append(command)
            continue
        _enter(opened, command)
        yield from ((one, _around(opened, guard)) for one in (*inner, command))
        inner = []
        guard = _text(command) if command.ending in ("&&", "||") else ""
    yield from ((one, _around(opened, guard)) for one in inner)


def _around(opened: list[_Open], guard: str) -> Blocks:
    blocks = [
        Block(kind=one.kind, condition=one.condition.strip()) for one in opened if one.entered
    ]
    return (*blocks, *([Block(kind="branch", condition=guard)] if guard else []))


def _enter(opened: list[_Open], command: Command) -> None:
    for keyword in command.keywords:
        if keyword == "if":
            opened.append(_Open("branch", "fi"))
        elif keyword in _LOOPS:
            opened.append(_Open("loop", "done"))
        elif keyword in _BRANCHES and opened:
            opened[-1].entered = True
    first = command.words[0].raw if command.words else ""
    if opened and first == opened[-1].end:
        opened.pop()
    elif first in ("for", "select"):
        opened.append(_Open("loop", "done", _text(command)))
    elif first == "case":
        opened.append(_Open("branch", "esac", _text(command)))
    elif opened and opened[-1].end == "fi" and not opened[-1].entered:
        opened[-1].condition += f" {_text(command)}"


def _text(command: Command) -> str:
    return " ".join(word.raw for word in (*command.assignments, *command.words))
