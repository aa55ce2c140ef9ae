"""The `#SBATCH` lines of a script, read as sbatch reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.lint.option_parser import Option, read_options
from hpc_train.lint.placeholders import is_template_line, without_blanks
from hpc_train.lint.shell.ast import Word
from hpc_train.model.value import Value
from hpc_train.slurm_options import Grammar

MARKER = "#SBATCH"


class Directive(Value, frozen=True, kw_only=True):
    """One `#SBATCH` line; sbatch ignores a `late` one, and rejects a job with `stray` words.

    `group` counts the `#SBATCH hetjob` lines before it, `unclosed` is an unterminated quote.
    """

    line: int
    text: str
    options: tuple[Option, ...]
    stray: tuple[str, ...] = ()
    unclosed: str = ""
    late: bool = False
    group: int = 0


def read_directives(
    lines: tuple[str, ...], grammar: Grammar, inner: frozenset[int]
) -> tuple[Directive, ...]:
    """Return all directives in order, except those on `inner` lines: the text of another script."""
    found = _directives(lines, first_command(lines), grammar)
    return tuple(one for one in found if not (one.late and one.line in inner))


def first_command(lines: tuple[str, ...]) -> int:
    """Return the line at which sbatch stops reading directives; 0 when there is none."""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text and not text.startswith("#") and not is_template_line(line):
            return number
    return 0


def _directives(lines: tuple[str, ...], stop: int, grammar: Grammar) -> Iterator[Directive]:
    group = 0
    for number, line in enumerate(lines, 1):
        if not line.startswith(MARKER):
            continue
        words, unclosed = split_directive(without_blanks(line[len(MARKER) :]))
        if words[:1] in (["hetjob"], ["packjob"]):
            group += 1
            continue
        made = [Word(raw=word, text=word, line=number) for word in words]
        options: list[Option] = []
        stray: list[str] = []
        index = 0
        while index < len(made):
            read, index = read_options(made, grammar, index, unknown_takes_word=True)
            options += read
            stray += [word.text for word in made[index : index + 1]]
            index += 1
        yield Directive(
            line=number,
            text=line[len(MARKER) :],
            options=tuple(options),
            stray=tuple(stray),
            unclosed=unclosed,
            late=0 < stop < number,
            group=group,
        )


_PART = re.compile(r"\\(.)|\\$|(['\"])|(\s+)|(#)|([^\\'\"\s#]+)", re.DOTALL)


def split_directive(text: str) -> tuple[list[str], str]:
    """Split at blanks, heeding quotes and backslashes; `#` ends it, even inside a word."""
    words: list[str] = []
    word: str | None = None
    quote = ""
    for match in _PART.finditer(text):
        escaped, mark, blank, comment, plain = match.groups()
        if quote:
            if mark == quote:
                quote = ""
            else:
                word = (word or "") + (escaped or match[0])
        elif mark:
            quote, word = mark, word or ""
        elif comment:
            break
        elif blank:
            words += [] if word is None else [word]
            word = None
        else:
            word = (word or "") + (escaped or plain or "")
    return words + ([] if word is None else [word]), quote
