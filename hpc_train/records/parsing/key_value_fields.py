"""`key: value | key: value |`: the fields of a line by their names, in any order."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from hpc_train.model.record import Scope
from hpc_train.records.parsing.printed_numbers import NUMBER

_FIELD = re.compile(r"^\s{0,40}([^:=]{1,80})[:=]\s{0,40}(\S.{0,80})")
# The first Megatron had no colons: `lm loss 9.2E+00`.
_BARE = re.compile(rf"\s{{0,40}}([A-Za-z][A-Za-z _-]{{0,60}}) ({NUMBER})\s{{0,40}}")
_NO_WORD = re.compile(r"[^a-z0-9]+")


class Field(NamedTuple):
    """The metric of a key; `mean`: its value is the mean of all steps since the last line."""

    metric: str
    scope: Scope
    scale: float = 1.0
    variant: str = ""
    mean: bool = False


def fields(text: str) -> tuple[list[tuple[str, str]], str]:
    """Return key and value of each field that ends with `|`, and the key of an incomplete last one.

    Keys are in lower case, with single spaces between words. A number that was truncated looks
    like a complete one, so a field without `|` after it is ignored.
    """
    *whole, rest = text.split("|")
    found = [pair for part in whole if (pair := _pair(part))]
    last = _pair(rest)
    return found, last[0] if last else ""


def _pair(part: str) -> tuple[str, str] | None:
    match = _FIELD.fullmatch(part) or _BARE.fullmatch(part)
    return match and (_words(match[1]), match[2].rstrip())


@lru_cache(1024)
def _words(key: str) -> str:
    return _NO_WORD.sub(" ", key.lower()).strip()
