"""The words of a text that a shell runs, each with its line in the script."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from hpc_train.lint.script_variables import Values
from hpc_train.lint.shell.ast import Word
from hpc_train.lint.shell.commands import read_commands

WHOLE = re.compile(r"\"?\$(?:(\w+)|\{(\w+)(?:\[[@*]\])?\})\"?")


def shell_words(word: Word, values: Values) -> Iterator[Word]:
    """Yield the words of `bash -c WORD`; the text may be in a variable that is set once."""
    match = WHOLE.fullmatch(word.raw)
    known = values.once.get(match[1] or match[2]) if match else None
    source = known.word if known else word
    text = values.substitute(known.value if known else word.text)
    lines = _lines(source.raw, text)
    for command in read_commands(text).commands:
        for inner in command.words:
            # Inserted lines hide the source of each word; the launch itself is certain.
            line = source.line + lines[inner.line - 1] if lines else word.line
            yield replace(inner, line=line)


def _lines(raw: str, text: str) -> Sequence[int]:
    """Return for each line of a text where it begins in its source; empty if that is unknown."""
    count = text.count("\n") + 1
    if count == raw.count("\n") + 1:
        return range(count)
    # Double quotes join a line that ends with a backslash to the next one.
    ends = [line.endswith("\\") for line in raw.split("\n")[:-1]]
    begins = [0, *(number for number, joined in enumerate(ends, 1) if not joined)]
    return begins if len(begins) == count else ()
