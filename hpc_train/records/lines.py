"""Blocks of a log -> the lines that hold one of the literals that somebody looks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hpc_train.records.blocks import Block
from hpc_train.records.line import Line
from hpc_train.records.literals import Occurrence

# A longer line is seen in windows around what was found: bounded time for a line of 1 GB.
_BEFORE = 1 << 14
_AFTER = 1 << 16

Found = tuple[Line, tuple[int, ...]]


def lines_of(
    block: Block,
    find: Callable[[bytes], list[Occurrence]],
    more: Callable[[], bool],
    file_rank: int | None = None,
) -> Iterator[Found]:
    """Yield the lines of a block that hold a literal, with the numbers of their literals.

    While `more()` is true, the lines that follow are yielded as well, whatever they hold. Line
    feeds and carriage returns end a line; only line feeds are counted, as editors do.
    """
    data, number = block.data, block.line
    occurrences = find(data)
    next_one, counted, position = 0, 0, 0
    while True:
        if position < len(data) and more():
            at = position
        elif next_one < len(occurrences):
            at = occurrences[next_one][0]
        else:
            return
        start, end = _bounds(data, position, at)
        held = []
        while next_one < len(occurrences) and occurrences[next_one][0] < end:
            held.append(occurrences[next_one][1])
            next_one += 1
        number += data.count(b"\n", counted, start)
        counted = start
        yield Line(data[start:end], number, file_rank), tuple(held)
        position = end + (2 if data[end : end + 2] == b"\r\n" else 1)


def _bounds(data: bytes, floor: int, at: int) -> tuple[int, int]:
    """Return the start and end of the line of `at`; a line starts nowhere before `floor`."""
    start = max(floor, at - _BEFORE)
    start = max(start, data.rfind(b"\n", start, at) + 1, data.rfind(b"\r", start, at) + 1)
    end = data.find(b"\n", at, at + _AFTER)
    if end < 0:
        end = min(at + _AFTER, len(data))
    back = data.find(b"\r", at, end)
    return start, end if back < 0 else back
