"""Log -> blocks of whole lines, so that neither the log's size nor its longest line matters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

SIZE = 1 << 23


class Stream(Protocol):
    """What a log is read from: a file, a decompressor, a pipe."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, none at the end."""
        ...


class Block(NamedTuple):
    """Whole lines of a log; the offset of the first byte, the number of the first line."""

    data: bytes
    offset: int
    line: int


def blocks(stream: Stream, offset: int = 0, line: int = 1, size: int = SIZE) -> Iterator[Block]:
    """Yield a log in parts of about `size` bytes, from where the stream stands.

    A line that is longer than a part is cut, at a carriage return where it has one. `offset` [B]
    and `line` say where the stream stands.
    """
    rest = b""
    while chunk := stream.read(size):
        data = rest + chunk
        end = _last_end(data, len(rest))
        if end == 0 and len(data) < size:
            # A pipe gives little at a time.
            rest = data
            continue
        end = end or len(data)
        yield Block(data[:end], offset, line)
        offset, line, rest = offset + end, line + data.count(b"\n", 0, end), data[end:]
    if rest:
        yield Block(rest, offset, line)


def _last_end(data: bytes, new: int) -> int:
    # The rest of the last block holds no end of a line, or it would not be a rest.
    end = data.rfind(b"\n", new) + 1
    return end or data.rfind(b"\r", new) + 1
