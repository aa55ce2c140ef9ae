"""Messages with which sbatch refuses a script -> meaning, next command, options."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from msgspec.structs import replace

from hpc_train.model.slurm_answer import Refusal
from hpc_train.model.value import Value
from hpc_train.slurm_options import sbatch_grammar
from hpc_train.typed_values import load_data

_NAMED = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])")
_LETTER = re.compile(r"(?:requires an argument|invalid option) -- '(\w)'")
_HELP = re.compile(r"(?<!\S)\S{0,64} ?--help\S{0,64}|--\w{1,64}=help")


class _File(Value, frozen=True, kw_only=True):
    schema: Literal[1]
    refusals: dict[str, Refusal]


@cache
def known_refusals() -> dict[str, Refusal]:
    """Return the table: a part of a message, in lower case, and what it means."""
    return load_data("slurm_refusals.yaml", _File).refusals


def refusal_of(message: str) -> Refusal | None:
    """Return the first known refusal in a message; None for an unknown message.

    Where the table has no options, they are those that the message itself names.
    """
    lowercase = message.lower()
    found = next((one for words, one in known_refusals().items() if words in lowercase), None)
    if found is None or found.options:
        return found
    return replace(found, options=named_options(message))


def named_options(message: str) -> tuple[str, ...]:
    """Return the options that a message of sbatch names, by their long names if it knows them."""
    letters = [sbatch_grammar().short.get(letter, letter) for letter in _LETTER.findall(message)]
    names = _NAMED.findall(_HELP.sub("", message))
    return tuple(dict.fromkeys((*names, *letters)))


def advice(message: str) -> str:
    """Return the next command, or an empty text for an unknown message."""
    found = refusal_of(message)
    return found.advice if found else ""
