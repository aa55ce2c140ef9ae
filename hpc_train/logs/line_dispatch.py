"""Log -> blocks of whole lines, in bounded memory for any size of log and of line."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

from hpc_train.logs.line import Line, Occurrence, finder

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


# A log -> the lines of interest, each with the readers that request it; one pass for all.

_LINE_FEED = 10
_FEW = 8

Asked = tuple[Line, Sequence[int]]


class Reader(Protocol):
    """A consumer of lines, selected by the literals that they contain."""

    @property
    def literals(self) -> tuple[bytes, ...]:
        """Every line of interest contains at least one of them; none contains a line end."""
        ...

    @property
    def wants_next(self) -> bool:
        """Whether the reader requests the next line, whatever it contains."""
        ...


class BlockReader(Protocol):
    """A consumer of whole blocks, for content too frequent to be read line by line."""

    @property
    def literals(self) -> tuple[bytes, ...]:
        """Every block of interest contains at least one of them."""
        ...

    def read_block(self, block: Block, number: int, /) -> None:
        """Read whole lines; `number` is that of the first."""
        ...


class Mark:
    """Position in a log: the offset [B] after the last whole line, and the next line's number.

    `end` [B] is the offset after all bytes read, which may be within a line.
    """

    __slots__ = ("end", "line", "offset")

    def __init__(self, offset: int = 0, line: int = 1) -> None:
        self.offset = self.end = offset
        self.line = line


# Once for all files of a folder.
@lru_cache(maxsize=8)
def _owners(wanted: tuple[tuple[bytes, ...], ...]) -> dict[bytes, tuple[int, ...]]:
    """Return the readers of each literal, by their numbers; the literals are sorted."""
    owners: dict[bytes, list[int]] = {}
    for number, literals in enumerate(wanted):
        for literal in dict.fromkeys(literals):
            owners.setdefault(literal, []).append(number)
    return {literal: tuple(owners[literal]) for literal in sorted(owners)}


class ReaderSet:
    """Selects the readers of a line: by its literals, or because they request the next line.

    `literals` are the searched ones, by number; `alone` are the readers of a line that contains
    only the literal of this number. While a reader is eager, the next line is always read.
    """

    def __init__(self, readers: Sequence[Reader]) -> None:
        self._readers = readers
        owners = _owners(tuple([reader.literals for reader in readers]))
        self.literals, self.alone = tuple(owners), tuple(owners.values())
        self.eager: list[int] = []
        self._known: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._with_eager: dict[tuple[int, ...], tuple[int, ...]] = {}
        self.heard(range(len(readers)))

    def of(self, held: tuple[int, ...]) -> Sequence[int]:
        """Return the readers of a line with these literals, the eager ones first."""
        known = self._with_eager if self.eager else self._known
        asked = known.get(held)
        if asked is None:
            owners = sorted({owner for one in held for owner in self.alone[one]})
            asked = tuple(dict.fromkeys([*self.eager, *owners]))
            # A line may contain a literal a thousand times; such combinations are not cached.
            if len(held) < _FEW:
                known[held] = asked
        return asked

    def heard(self, asked: Sequence[int]) -> None:
        """Update which readers request the next line; only those that have just read can change."""
        readers, eager = self._readers, self.eager
        for number in asked:
            if readers[number].wants_next != (number in eager):
                eager.remove(number) if number in eager else eager.append(number)
                eager.sort()
                self._with_eager.clear()


def dispatch(
    stream: Stream,
    readers: Sequence[Reader],
    file_rank: int | None = None,
    mark: Mark | None = None,
    whole: Sequence[BlockReader] = (),
) -> Iterator[Asked]:
    """Yield each line of interest with the numbers of its readers.

    Readers that requested the line after the previous one come first, the others in their order.
    `mark` is the position of the stream, and is updated while the stream is read. The readers in
    `whole` receive the blocks that contain one of their literals.
    """
    audience, mark = ReaderSet(readers), mark or Mark()
    lines = len(audience.literals)
    own = sorted({one for reader in whole for one in reader.literals}.difference(audience.literals))
    literals = (*audience.literals, *own)
    find, number = finder(literals, frozenset(own)), mark.line
    for block in blocks(stream):
        found = find(memoryview(block.data)[: block.end])
        if whole:
            held = {literals[one] for _, one in found}
            for reader in whole:
                if not held.isdisjoint(reader.literals):
                    reader.read_block(block, number)
            found = [one for one in found if one[1] < lines] if held.intersection(own) else found
        number = yield from _lines_of(block, found, audience, number, file_rank)
        mark.end += block.end
        if block.data[block.end - 1] == _LINE_FEED:
            mark.offset, mark.line = mark.end, number


# A longer line is read in windows around its literals: bounded time for a line of 1 GB.
_BEFORE = 1 << 14
_AFTER = 1 << 16


def _lines_of(
    block: Block,
    found: Sequence[Occurrence],
    audience: ReaderSet,
    number: int,
    file_rank: int | None = None,
) -> Generator[Asked, None, int]:
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
        after = index
        while after < last and found[after][0] < end:
            after += 1
        held, index = found[index:after], after
        if len(held) != 1 or audience.eager:
            asked = audience.of(tuple([literal for _, literal in held]))
        raw = bytes(memoryview(data)[start:end])
        yield Line(raw, number, file_rank, None, held, audience.literals), asked
        audience.heard(asked)
        # A line ends in one of these, a window of a long line anywhere.
        ending = bytes(data[end : min(end + 2, size)])
        position = end + (2 if ending == b"\r\n" else ending[:1] in (b"\n", b"\r"))


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
