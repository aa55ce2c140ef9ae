"""Which variables a script sets, where, to what, and who sees them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from hpc_train.lint.shell.ast import ASSIGNMENT, Command, Word
from hpc_train.model.value import Value

_DECLARING = frozenset(("export", "declare", "typeset", "readonly", "local"))
_REFERENCE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_BARE = re.compile(r"\b[A-Za-z_]\w*\b")
_PRODUCT = re.compile(r"^\s*\d{1,9}(?:\s*\*\s*\d{1,9})*\s*")
_ROUNDS = 6
_LONGEST = 2000
_LARGEST = 10**9


class Assignment(Value, frozen=True, kw_only=True):
    """`NAME=value`; `exported` when a program that is started then sees it."""

    name: str
    value: str
    line: int
    word: Word
    exported: bool
    inside: str = ""

    @property
    def literal(self) -> bool:
        """Whether the value is known without running the script."""
        return not self.word.expanded and "$" not in self.value and "`" not in self.value


def read_assignments(commands: Iterable[Command]) -> tuple[Assignment, ...]:
    """Return all assignments in order; one that is exported later counts as exported."""
    commands = tuple(commands)
    exported = set(_exported(commands))
    return tuple(found for command in commands for found in _assignments(command, exported))


def _exported(commands: Iterable[Command]) -> Iterator[str]:
    for command in commands:
        texts = [word.text for word in command.words]
        if command.program in ("export", "declare", "typeset") and "-n" not in texts:
            if command.program == "export" or any(re.match(r"-\w*x", text) for text in texts):
                yield from texts[1:]
        if texts[:1] == ["set"] and (set(texts) & {"allexport"} or _all_exported(texts)):
            yield "*"


def _all_exported(texts: list[str]) -> bool:
    return any(re.match(r"-[a-zA-Z]*a", text) for text in texts[1:])


def _assignments(command: Command, exported: set[str]) -> Iterator[Assignment]:
    prefix = bool(command.words)
    for word in command.assignments:
        yield _assignment(word, exported, command, seen=prefix)
    declaring = command.program in _DECLARING
    if declaring or command.program == "env":
        exports = command.program in ("export", "env") or any(
            re.match(r"-\w*x", word.text) for word in command.words
        )
        for word in command.words[1:]:
            if ASSIGNMENT.match(word.raw):
                yield _assignment(word, exported, command, seen=exports)
            elif command.program == "env" and not word.text.startswith("-"):
                return
    if re.match(r"(mpirun|mpiexec|orterun|prterun)", command.program):
        for option, word in pairwise(command.words):
            if option.text == "-x" and ASSIGNMENT.match(word.text):
                yield _assignment(word, exported, command, seen=True)


def _assignment(word: Word, exported: set[str], command: Command, *, seen: bool) -> Assignment:
    name, _, value = word.text.partition("=")
    name = name.rstrip("+").partition("[")[0]
    return Assignment(
        name=name,
        value=value,
        line=word.line,
        word=word,
        exported=seen or name in exported or "*" in exported,
        inside="command" if command.words and not command.program == "export" else command.inside,
    )


class Values(Value, frozen=True, kw_only=True):
    """What is known of variables before the script runs: set once, or Slurm's own."""

    once: dict[str, Assignment]
    slurm: dict[str, int]

    def substitute(self, text: str) -> str:
        """Replace each `$NAME` that is known; what is not known stays."""
        for _ in range(_ROUNDS):
            if len(text) > _LONGEST or "$" not in text:
                break
            new = _REFERENCE.sub(lambda match: self._value(match[1] or match[2], match[0]), text)
            if new == text:
                break
            text = new
        return text

    def _value(self, name: str, otherwise: str) -> str:
        if name in self.slurm:
            return str(self.slurm[name])
        known = self.once[name].value if name in self.once else otherwise
        return known if len(known) <= _LONGEST else otherwise

    def number(self, text: str | None) -> int | None:
        """Return the number that a text comes to, if that is known."""
        if text is None:
            return None
        known = self.substitute(text).strip()
        if known.startswith("$((") and known.endswith("))"):
            known = _BARE.sub(lambda match: self._value(match[0], match[0]), known[3:-2])
            known = self.substitute(known)
        if not _PRODUCT.fullmatch(known):
            return None
        product = 1
        for factor in known.split("*"):
            product = min(product * int(factor), _LARGEST)
        return product


def known_values(assignments: Iterable[Assignment], slurm: dict[str, int]) -> Values:
    """Keep the variables of the script that are set exactly once."""
    found: dict[str, list[Assignment]] = {}
    for assignment in assignments:
        if assignment.inside in ("", "substitution"):
            found.setdefault(assignment.name, []).append(assignment)
    once = {name: every[0] for name, every in found.items() if len(every) == 1}
    return Values(once=once, slurm=slurm)
