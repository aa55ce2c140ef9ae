"""Blocks of a log -> the lines that contain one of the searched literals."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Protocol

from hpc_train.records.line import Line
from hpc_train.records.literal_positions import Occurrence
from hpc_train.records.log_blocks import Block

# A longer line is read in windows around its literals: bounded time for a line of 1 GB.
_BEFORE = 1 << 14
_AFTER = 1 << 16

DispatchedLine = tuple[Line, Sequence[int]]


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
        """Update which readers request the next line, after these have read one."""
        ...


def lines_of(
    block: Block,
    found: Sequence[Occurrence],
    audience: Subscribers,
    number: int,
    file_rank: int | None = None,
) -> Generator[DispatchedLine, None, int]:
    """Yield the requested lines of a block, with their readers.

    Line feeds and carriage returns end a line; only line feeds are counted, as in editors.
    `number` is the number of the first line of the block; that of the next block is returned.
    """
    data, size = block
    returns = data.find(b"\r", 0, size) >= 0
    counted, position, index, last = 0, 0, 0, len(found)
    while True:
        if audience.eager and position < size:
            at, asked = position, audience.of(())
        elif index < last:
            at, asked = found[index][0], audience.alone[found[index][1]]
        else:
            return number + data.count(b"\n", counted, size)
        start, end = _bounds(block, position, at, returns=returns)
        number += data.count(b"\n", counted, start)
        counted = start
        held = found[index : _after(found, index, end)]
        index += len(held)
        if len(held) != 1 or audience.eager:
            asked = audience.of(tuple([literal for _, literal in held]))
        raw = bytes(memoryview(data)[start:end])
        yield Line(raw, number, file_rank, None, held, audience.literals), asked
        audience.heard(asked)
        position = end + _length_of_end(data, end, size)


def _after(found: Sequence[Occurrence], index: int, end: int) -> int:
    """Return the index of the first occurrence from `end` on."""
    while index < len(found) and found[index][0] < end:
        index += 1
    return index


def _bounds(block: Block, position: int, at: int, *, returns: bool) -> tuple[int, int]:
    """Return where the line that contains `at` begins, not before `position`, and where it ends.

    `returns`: the block has carriage returns.
    """
    data, size = block
    # A line of millions of bytes is read in windows around its literals.
    floor = position if at - position < _BEFORE else at - _BEFORE
    start = data.rfind(b"\n", floor, at) + 1 or floor
    limit = at + _AFTER if at + _AFTER < size else size
    end = data.find(b"\n", at, limit)
    end = limit if end < 0 else end
    if returns:
        start = data.rfind(b"\r", start, at) + 1 or start
        end = (data.find(b"\r", at, end) + 1 or end + 1) - 1
    return start, end


def _length_of_end(data: bytearray, end: int, size: int) -> int:
    if end >= size:
        return 0
    mark = data[end]
    if mark == 13:
        return 2 if end + 1 < size and data[end + 1] == 10 else 1
    return 1 if mark == 10 else 0
