"""Checks of arguments that the type checker of a user may not have made."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, SupportsFloat, TypeVar

from hpc_train.base.errors import ArgumentError, nearest
from hpc_train.runs.json_files import default_results

Word = TypeVar("Word")
AnyPath = str | os.PathLike[str]


def path_of(value: object, name: str) -> Path:
    """Return a path that was given as text or as a path.

    Raises:
        ArgumentError: another type, or an empty text.
    """
    return Path(text_of(value, name))


def text_of(value: object, name: str) -> str:
    """Return a name or path as text.

    Raises:
        ArgumentError: another type, or an empty text.
    """
    text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not isinstance(text, str):
        raise ArgumentError(f"{name}: must be text or a path, not {_shown(value)}")
    if not text or "\0" in text:
        raise ArgumentError(f"{name}: {text!r} is not a name or a path")
    return text


def texts_of(values: object, name: str) -> list[str]:
    """Return one or several names or paths as texts.

    Raises:
        ArgumentError: another type, or none.
    """
    if isinstance(values, (str, bytes, os.PathLike)):
        return [text_of(values, name)]
    if not isinstance(values, Iterable):
        raise ArgumentError(f"{name}: must be text, a path or a list of them, not {_shown(values)}")
    found = [text_of(value, f"{name}[{index}]") for index, value in enumerate(values)]
    if not found:
        raise ArgumentError(f"{name}: the list is empty", "name at least one")
    return found


def words_of(values: object, name: str) -> tuple[str, ...]:
    """Return the arguments of a program; numbers are written as Python writes them.

    Raises:
        ArgumentError: one text instead of a list, or another type.
    """
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ArgumentError(
            f"{name}: must be a list with one item for each word, not {_shown(values)}",
            f'{name}=["--epochs", 3]',
        )
    return tuple(_word(value, f"{name}[{index}]") for index, value in enumerate(values))


def _word(value: object, name: str) -> str:
    if isinstance(value, (str, os.PathLike)):
        return str(os.fspath(value))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    raise ArgumentError(f"{name}: must be text or a number, not {_shown(value)}")


def results_of(results: AnyPath | None) -> Path:
    """Return the absolute folder of all results; by default $HPCTRAIN_RESULTS or ./results."""
    folder = default_results() if results is None else path_of(results, "results")
    # The interpreter may change its folder before the next call.
    return folder.absolute()


def mapping_of(value: object, name: str) -> Mapping[str, Any]:
    """Return a mapping with texts as keys; empty for None.

    Raises:
        ArgumentError: another type.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ArgumentError(f"{name}: must be a dict with texts as keys, not {_shown(value)}")
    return value


def flag_of(value: object, name: str) -> bool:
    """Return True or False.

    Raises:
        ArgumentError: another type; the text "no" would count as true.
    """
    if not isinstance(value, bool):
        raise ArgumentError(f"{name}: must be True or False, not {_shown(value)}")
    return value


def number_of(value: object, name: str) -> float | None:
    """Return a number that is at least 0, or None.

    Raises:
        ArgumentError: another type, a negative number, infinity or NaN.
    """
    if value is None:
        return None
    if isinstance(value, (bool, str)) or not isinstance(value, SupportsFloat):
        raise ArgumentError(f"{name}: must be a number, not {_shown(value)}")
    number = float(value)
    if not 0 <= number < math.inf:
        raise ArgumentError(f"{name}: must be a number of at least 0, not {number:g}")
    return number


def count_of(value: object, name: str, least: int) -> int | None:
    """Return a whole number that is at least `least`, or None.

    Raises:
        ArgumentError: another type, or a smaller number.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ArgumentError(
            f"{name}: must be a whole number of at least {least}, not {_shown(value)}"
        )
    return value


def choice_of(value: Word, name: str, allowed: tuple[Word, ...]) -> Word:
    """Return one of the allowed words.

    Raises:
        ArgumentError: another word.
    """
    if value not in allowed:
        words = [word for word in allowed if isinstance(word, str)]
        near = nearest(value, words) if isinstance(value, str) else ""
        raise ArgumentError(f"{name}: must be one of {', '.join(words)}, not {_shown(value)}{near}")
    return value


def _shown(value: object) -> str:
    """Return a value for a message: short, or only its type."""
    if isinstance(value, (bool, int, float, str)):
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:60]}…"
    return f"a value of type {type(value).__name__}"
