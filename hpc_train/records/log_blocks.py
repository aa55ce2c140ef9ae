"""Log -> blocks of whole lines, in bounded memory for any size of log and of line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

# Longest line that is not split.
SIZE = 1 << 20
# Fits into the cache of a core with what is found in it: a larger block would be read from memory
# several times.
_READ = 1 << 17
# Overlap [B] of the parts of a line that is longer than a block, for matches across the cut.
_CARRIED = 1 << 16


class Stream(Protocol):
    """A source of bytes: a file, a decompressor or a pipe."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill a part of the buffer and return how many bytes that is, 0 at the end."""
        ...


class Block(NamedTuple):
    """Whole lines of a log: the first `end` bytes of `data`, which is used again for the next."""

    data: bytearray
    end: int


def blocks(stream: Stream, size: int = SIZE) -> Iterator[Block]:
    """Yield a log in parts of at most `size` bytes, from the current position of the stream.

    A part is smaller unless a line is long. A line that is longer than `size` is split, at a
    carriage return if it has one.
    """
    data = bytearray(size)
    view = memoryview(data)
    held = 0
    while count := stream.readinto(view[held : held + _READ]):
        new, held = held, held + count
        # The bytes carried over contain no line end.
        end = data.rfind(b"\n", new, held) + 1
        if end == 0 and held < size:
            # A read from a pipe may be short.
            continue
        end = end or data.rfind(b"\r", 0, held) + 1 or size - min(_CARRIED, size // 2)
        yield Block(data, end)
        held -= end
        view[:held] = view[end : end + held]
    if held:
        yield Block(data, held)
