"""The options of sbatch, srun and mpirun, read as those programs read them."""

from __future__ import annotations

from collections.abc import Sequence

from hpc_train.lint.shell.ast import Word
from hpc_train.model.value import Value
from hpc_train.slurm_options import Grammar


class Option(Value, frozen=True, kw_only=True):
    """An option under its long name; `spelled` is how it was written."""

    name: str
    value: str | None
    line: int
    spelled: str
    known: bool = True
    word: Word | None = None


def read_options(
    words: Sequence[Word], grammar: Grammar, index: int = 0
) -> tuple[tuple[Option, ...], int]:
    """Read options up to the first word that is none; return them and that word's index."""
    options: list[Option] = []
    while index < len(words):
        text = words[index].text
        if text == "--":
            return tuple(options), index + 1
        if not text.startswith("-") or text == "-":
            break
        following = words[index + 1].text if index + 1 < len(words) else None
        read = _long if text.startswith("--") else _short
        option, took = read(words[index], following, grammar)
        options.append(option)
        index += 1 + took
    return tuple(options), index


def _long(word: Word, following: str | None, grammar: Grammar) -> tuple[Option, bool]:
    name, equals, value = word.text[2:].partition("=")
    full = full_name(name, grammar)
    kind = grammar.long.get(full or name, "")
    took = kind == "=" and not equals and following is not None
    return (
        Option(
            name=full or name,
            value=following if took else value if equals else None,
            line=word.line,
            spelled=f"--{name}",
            known=full is not None,
            word=word,
        ),
        took,
    )


def full_name(name: str, grammar: Grammar) -> str | None:
    """Return the option that a name or an unambiguous beginning of one stands for."""
    if name in grammar.long:
        return name
    fitting = [known for known in grammar.long if name and known.startswith(name)]
    return fitting[0] if fitting else None


def _short(word: Word, following: str | None, grammar: Grammar) -> tuple[Option, bool]:
    letter, rest = word.text[1], word.text[2:]
    name = grammar.short.get(letter)
    kind = grammar.long.get(name or "", "")
    took = kind == "=" and not rest and following is not None
    return (
        Option(
            name=name or letter,
            value=following if took else rest or None,
            line=word.line,
            spelled=f"-{letter}",
            known=name is not None,
            word=word,
        ),
        took,
    )
