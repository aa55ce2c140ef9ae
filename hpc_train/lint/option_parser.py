"""The options of sbatch, srun and mpirun, read as those programs read them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from hpc_train.lint.shell.ast import Word
from hpc_train.model.value import Value
from hpc_train.slurm_options import Grammar


class Option(Value, frozen=True, kw_only=True):
    """An option under its long name; `spelled` is its spelling in the script.

    `ambiguous` has the options that an ambiguous prefix may mean: the program then refuses it.
    """

    name: str
    value: str | None
    line: int
    spelled: str
    known: bool = True
    ambiguous: tuple[str, ...] = ()
    word: Word | None = None


def read_options(
    words: Sequence[Word], grammar: Grammar, index: int = 0, *, unknown_takes_word: bool = False
) -> tuple[tuple[Option, ...], int]:
    """Read options up to the first other word; return them and that word's index.

    With `unknown_takes_word`, the word after an unknown option is its value, not a program.
    """
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
        unknown = not option.known and option.value is None and text.startswith("--")
        if unknown_takes_word and unknown and following and not following.startswith("-"):
            option, took = replace(option, value=following), True
        options.append(option)
        index += 1 + took
    return tuple(options), index


def _long(word: Word, following: str | None, grammar: Grammar) -> tuple[Option, bool]:
    name, equals, value = word.text[2:].partition("=")
    full = full_name(name, grammar)
    meant = () if full else fitting_names(name, grammar)
    kinds = {grammar.long[one] for one in ((full,) if full else meant)}
    took = kinds == {"="} and not equals and following is not None
    return (
        Option(
            name=full or name,
            value=following if took else value if equals else None,
            line=word.line,
            spelled=f"--{name}",
            known=full is not None,
            ambiguous=meant,
            word=word,
        ),
        took,
    )


def full_name(name: str, grammar: Grammar) -> str | None:
    """Return the option with a name, an alias or an unambiguous prefix, as getopt_long does."""
    if name in grammar.long:
        return name
    if name in grammar.aliases:
        return grammar.aliases[name]
    fitting = fitting_names(name, grammar)
    return fitting[0] if len(fitting) == 1 else None


def fitting_names(name: str, grammar: Grammar) -> tuple[str, ...]:
    """Return the options that begin with a prefix; an alias counts as its option."""
    spelled = [known for known in (*grammar.long, *grammar.aliases) if known.startswith(name)]
    return tuple(dict.fromkeys(grammar.aliases.get(one, one) for one in spelled if name))


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
