"""The loops of a script, as ranges of lines."""

from __future__ import annotations

import re
from collections.abc import Iterable

_BEGIN = re.compile(r"^\s*(?:for|while|until)\b|(?:;|&&)\s*(?:for|while|until)\b")
_END = re.compile(r"(?:^|[;&|])\s*done\b")


def read_loops(lines: tuple[str, ...]) -> tuple[range, ...]:
    """Return the line numbers of each loop, inner loops before the outer ones."""
    found: list[range] = []
    opened: list[int] = []
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("#"):
            continue
        opened += [number] * len(_BEGIN.findall(line))
        for _ in _END.findall(line):
            if opened:
                found.append(range(opened.pop(), number + 1))
    return tuple(found)


def loop_around(loops: Iterable[range], number: int) -> range | None:
    """Return the innermost loop around a line; None without one."""
    return next((loop for loop in loops if number in loop), None)
