"""Blocks of a log -> the lines that contain one of the searched literals."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Protocol

from hpc_train.records.line import Line
from hpc_train.records.log_blocks import Block
from hpc_train.records.multi_search import Occurrence

# A longer line is seen in windows around what was found: bounded time for a line of 1 GB.
_BEFORE = 1 << 14
_AFTER = 1 << 16

Found = tuple[Line, Sequence[int]]


class Subscribers(Protocol):
    """The readers of the lines; while one is eager, the next line is always read."""

    eager: list[int]

    @property
    def literals(self) -> Sequence[bytes]:
        """The searched literals, by number."""
        ...

    @property
    def alone(self) -> Sequence[Sequence[int]]:
        """The readers of a line that contains one literal, by the number of the literal."""
        ...

    def of(self, held: tuple[int, ...], /) -> Sequence[int]:
        """Return the readers of a line that contains these literals."""
        ...

    def heard(self, asked: Sequence[int], /) -> None:
        """Update which readers want the next line, after these have read one."""
        ...


def lines_of(
    block: Block,
    found: Sequence[Occurrence],
    audience: Subscribers,
    number: int,
    file_rank: int | None = None,
) -> Generator[Found, None, int]:
    """Yield the lines of a block that are wanted, with their readers.

    Line feeds and carriage returns end a line; only line feeds are counted, as editors do.
    `number` is that of the block's first line; that of the next block's is returned.
    """
    data, size = block
    literals, alone = audience.literals, audience.alone
    view, returns = memoryview(data), data.find(b"\r", 0, size) >= 0
    counted, position, index, last = 0, 0, 0, len(found)
    while True:
        if audience.eager and position < size:
            at = position
        elif index < last:
            at = found[index][0]
        else:
            return number + data.count(b"\n", counted, size)
        start, end = _bounds(block, position, at)
        if returns:
            start = data.rfind(b"\r", start, at) + 1 or start
            end = (data.find(b"\r", at, end) + 1 or end + 1) - 1
        first = index
        while index < last and found[index][0] < end:
            index += 1
        held = found[first:index]
        number += data.count(b"\n", counted, start)
        counted = start
        if index == first + 1 and not audience.eager:
            asked = alone[held[0][1]]
        else:
            asked = audience.of(tuple([literal for _, literal in held]))
        yield Line(bytes(view[start:end]), number, file_rank, None, held, literals), asked
        audience.heard(asked)
        position = end + _length_of_end(data, end, size)


def _bounds(block: Block, position: int, at: int) -> tuple[int, int]:
    """Return where the line of `at` begins, not before `position`, and where it ends."""
    data, size = block
    # A line of millions of bytes is seen in windows around what was found.
    floor = position if at - position < _BEFORE else at - _BEFORE
    start = data.rfind(b"\n", floor, at) + 1 or floor
    limit = at + _AFTER if at + _AFTER < size else size
    end = data.find(b"\n", at, limit)
    return start, limit if end < 0 else end


def _length_of_end(data: bytearray, end: int, size: int) -> int:
    if end >= size:
        return 0
    mark = data[end]
    if mark == 13:
        return 2 if end + 1 < size and data[end + 1] == 10 else 1
    return 1 if mark == 10 else 0
