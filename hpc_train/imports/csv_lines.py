"""The bytes of a text -> where its lines end, how they begin, and what is between their cells."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

# Of this many bytes at a time, so that little memory is needed beside the text.
_BLOCK = 1 << 22
_LF = ord("\n")
Places = NDArray[np.int64]


def line_ends(text: bytes) -> Places:
    """Return the places of all line feeds."""
    return np.concatenate([np.zeros(0, dtype=np.int64), *_places(text, _LF)])


def begins_with(text: bytes, ends: Places, pattern: re.Pattern[bytes]) -> bool:
    """Whether a line begins with a byte that the pattern matches, or the last line is empty.

    `ends` are the places of the line feeds.
    """
    first = np.append(ends + 1, 0)
    if not text or first.max() == len(text):
        return True
    table = [bool(pattern.match(bytes([number]))) for number in range(256)]
    return bool(np.array(table)[_bytes(text)[first]].any())


def line_of_other_length(text: bytes, ends: Places, separator: str, between: int) -> int | None:
    """Return the number of the first line, from 0, without `between` separators; None if all have.

    The last line has no line feed.
    """
    ends = np.append(ends, len(text))
    before = line = 0
    for block, places in enumerate(_places(text, ord(separator)), start=1):
        last = int(np.searchsorted(ends, block * _BLOCK))
        own = before + np.searchsorted(places, ends[line:last])
        wrong = own != between * np.arange(line + 1, last + 1)
        if wrong.any():
            return line + int(wrong.argmax())
        before, line = before + len(places), last
    return None if before == between * len(ends) else len(ends) - 1


def _places(text: bytes, wanted: int) -> Iterator[Places]:
    """Yield the places of a byte in each block."""
    every = _bytes(text)
    for start in range(0, len(text), _BLOCK):
        yield start + np.flatnonzero(every[start : start + _BLOCK] == wanted)


def _bytes(text: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(text, dtype=np.uint8)
