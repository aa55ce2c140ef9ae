"""The lines of a script that are text for another program: here-documents, quoted texts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.lint.shell.ast import Word
from hpc_train.lint.shell.commands import ShellText

_TRIPLE = re.compile(r"\"{3}|'{3}")


def inner_lines(read: ShellText) -> Iterator[int]:
    """Yield the numbers of the lines that begin inside a here-document or a word."""
    for document in read.documents:
        yield from document.lines
    for command in read.commands:
        for word in (*command.assignments, *command.words):
            yield from _inside(word)


def _inside(word: Word) -> Iterator[int]:
    # The commands of a substitution, and the words of an array, are the script's own lines.
    if not word.items and "$(" not in word.raw and "`" not in word.raw:
        yield from range(word.line + 1, word.line + 1 + word.raw.count("\n"))


def lines_of_strings(lines: tuple[str, ...]) -> Iterator[int]:
    """Yield the numbers of the lines that begin inside a triple-quoted string of Python."""
    open_ = ""
    for number, line in enumerate(lines, 1):
        if open_:
            yield number
        for match in _TRIPLE.finditer(line):
            open_ = "" if match[0] == open_ else open_ or match[0]
