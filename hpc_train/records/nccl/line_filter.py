"""A block of a log -> its lines of NCCL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hpc_train.records.log_blocks import Block
from hpc_train.records.multi_search import Find

# A search hit costs as much as a few lines that are only counted.
_LENGTH = 256


class FilteredLines(NamedTuple):
    """Lines, and the offset of each in the block [B]; None if these are all its lines."""

    joined: bytes
    starts: Sequence[int] | None = None

    def worth_it(self, block: Block) -> bool:
        """Whether the lines are few enough for filtering to save time."""
        return self.starts is not None and len(self.starts) * _LENGTH < block.end


def lines_with(find: Find, block: Block) -> FilteredLines:
    """Return the lines of a block that contain a literal."""
    text, lines, starts, stop = bytes(memoryview(block.data)[: block.end]), [], [], -1
    for at, _ in find(memoryview(text)):
        if at > stop:
            start = text.rfind(b"\n", stop + 1, at) + 1 or stop + 1
            stop = text.find(b"\n", at)
            stop = len(text) if stop < 0 else stop
            lines.append(text[start:stop])
            starts.append(start)
    return FilteredLines(b"\n".join(lines), starts)


def all_lines(block: Block) -> FilteredLines:
    """Return all lines of a block."""
    return FilteredLines(bytes(memoryview(block.data)[: block.end]))


class Numbers:
    """Counts the lines of a block before requested positions, one after the other."""

    def __init__(self, block: Block, first: int, starts: Sequence[int] | None) -> None:
        self._data = block.data
        self._number = first
        self._starts = starts
        self._counted = 0

    def of(self, index: int) -> int:
        """Return the number of a line in the log."""
        if self._starts is None:
            return self._number + index
        start = self._starts[index]
        self._number += self._data.count(b"\n", self._counted, start)
        self._counted = start
        return self._number
