"""Bytes of a log -> Lines with a literal of a reader, each handed to its reader, in one pass.

A Line is without prefixes, colours and invalid characters, and has its rank and host.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from operator import itemgetter
from typing import NamedTuple, Protocol

import msgspec

# A time counts as a prefix only in front of another one: alone, it belongs to the line.
_TIME = (
    r"(?:\[?(?:\d{4}-?\d\d-?\d\d[ T]?|[A-Z][a-z]{2} [ \d]\d )?\d\d:\d\d:\d\d(?:[.,]\d{1,9}(?!\d))?"
    r"(?:Z|[+-]\d\d:?\d\d)?\]?:?\s{0,4}"
    r"|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4})"
)
_PREFIX = re.compile(
    rf"\s{{0,64}}(?!\s){_TIME}?(?:"
    r"(?P<task>\d{1,7}): "  # srun --label
    r"|\[[^][,\s]{1,256},(?P<mpi>\d{1,7})\]"  # mpirun tags; detailed ones name the host
    r"(?:\[(?P<tagged>[^][:\s]{1,256}):?[^][\s]{0,64}\])?<std(?:out|err)>: ?"
    r"|\[rank(?P<rank>\d{1,7})\]:? ?"  # PyTorch
    r"|\[rank-(?P<of>\d{1,7})/\d{1,7}\]:? ?"  # Primus
    r"|\[[A-Za-z_]{1,64}(?P<local>\d{1,7})\]: ?"  # torchrun: role and local rank
    r"|\[(?P<host>[A-Za-z][\w.-]{0,255})(?<!\.py)(?<!\.cc)(?<!\.cu)(?<!\.cpp)(?<!\.c)"
    r":(?P<slot>\d{1,2})\]:? ?"  # sites: host and local rank
    r"|\[(?P<intel>\d{1,7})\] "  # Intel MPI -prepend-rank
    r"|\([A-Za-z_][\w.:<>-]{0,128} pid=\d{1,10}(?:, ip=[\w.:]{3,64})?\) ?"  # Ray: actor or task
    r"|(?P<address>\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}): "  # pdsh, which DeepSpeed calls
    r")"
)
# Kinds of prefix with a pattern without other groups: most lines of most logs.
_ALONE = frozenset({"task", "mpi", "rank", "of", "local", "intel", "address"})
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
# The beginning of a line with a prefix, except for a date.
_PREFIXED = frozenset(bytes([byte]) for byte in b"[0123456789 \t\x1b\0")


class Prefix(msgspec.Struct, frozen=True, gc=False):
    """The rank, host and task in the prefixes of a line, and the text after them.

    `rank` is global; `local` is the rank within an agent of torchrun, or on the host; `task` is
    the label of srun.
    """

    rest: str
    rank: int | None = None
    local: int | None = None
    task: int | None = None
    host: str | None = None


def peel(text: str) -> Prefix:
    """Remove the prefixes of a line, in any order; the outermost rank is used."""
    if not _may_begin(text, 0):
        return Prefix(text)
    found: dict[str, str] = {}
    position = 0
    while _may_begin(text, position):
        match = _PREFIX.match(text, position)
        if match is None or match.end() == position:
            break
        position = match.end()
        kind = match.lastgroup
        if kind in _ALONE:
            found.setdefault(kind, match[kind])
        else:
            stated = {kind: value for kind, value in match.groupdict().items() if value}
            found = stated | found
    rest = text[position:]
    return Prefix(rest, *_stated(tuple(found.items()))) if found else Prefix(rest)


def _may_begin(text: str, position: int) -> bool:
    """Whether a prefix may begin there; only dates begin with a letter: `Mon Jan`, `Jan 12`."""
    return not text[position : position + 1].isalpha() or text[position + 3 : position + 4] == " "


# Most lines of a log have the same few ranks.
@lru_cache(maxsize=4096)
def _stated(
    items: tuple[tuple[str, str], ...],
) -> tuple[int | None, int | None, int | None, str | None]:
    """Return rank, local rank, task and host."""
    found = dict(items)

    def first(*kinds: str) -> int | None:
        return next((int(found[kind]) for kind in kinds if kind in found), None)

    local = first("local", "slot")
    # Under torchrun, the label of srun counts the agents (one a node), not the ranks.
    kinds = ("rank", "of") if local is not None else ("rank", "of", "task", "mpi", "intel")
    host = found.get("host") or found.get("tagged") or found.get("address")
    return first(*kinds), local, first("task"), host


class Line(msgspec.Struct, gc=False):
    """One line of a log, or a window of it where it is very long.

    `raw` holds its bytes, `number` counts from 1. `text` is what the program wrote: without rank
    prefixes, terminal escapes, trailing blanks and NUL; bytes that are not UTF-8 become U+FFFD.
    """

    raw: bytes
    number: int = 1
    file_rank: int | None = None
    _prefix: Prefix | None = None
    _found: Sequence[Occurrence] = ()
    _literals: Sequence[bytes] = ()

    @property
    def held(self) -> set[bytes]:
        """The searched literals that the line contains."""
        return {self._literals[number] for _, number in self._found}

    @property
    def text(self) -> str:
        """The line without the additions of launchers and terminals."""
        return (self._prefix or self.prefix).rest

    @property
    def rank(self) -> int | None:
        """The global rank that wrote the line: from its prefix, else from the file name."""
        rank = (self._prefix or self.prefix).rank
        return self.file_rank if rank is None else rank

    @property
    def node(self) -> str | None:
        """The host in the prefix."""
        if self._prefix is not None:
            return self._prefix.host
        if self.raw[:1] not in _PREFIXED and self.raw[3:4] != b" ":
            return None
        return self.prefix.host

    @property
    def prefix(self) -> Prefix:
        """The prefix before the text: rank, local rank, host."""
        if self._prefix is None:
            self._prefix = peel(clean(self.raw))
        return self._prefix


def clean(raw: bytes) -> str:
    """Return a line as text that a terminal can print."""
    text = raw.decode("utf-8", "replace")
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if "\x00" in text:
        text = text.replace("\x00", "")
    return text.rstrip()


# Many literals -> where they occur in a block, in one pass.

Occurrence = tuple[int, int]
"""Offset of a literal's last byte, and the literal's number."""

Find = Callable[[memoryview], list[Occurrence]]


# Compiled once for all files of a folder.
@lru_cache(maxsize=8)
def finder(literals: tuple[bytes, ...], once: frozenset[bytes] = frozenset()) -> Find:
    """Return a function that lists every occurrence of the literals in some bytes, in order.

    Of the literals in `once`, only the first occurrence is listed.

    Hyperscan searches for hundreds of literals at the speed of one (1.5 to 2.7 GB/s); `re` needs a
    pass at 2 GB/s for each literal. `re` is used if Hyperscan has no build for the machine.
    """
    try:
        import hyperscan
    except ImportError:
        return turns(literals, once)
    database = hyperscan.Database()
    database.compile(
        expressions=[re.escape(literal) for literal in literals],
        ids=list(range(len(literals))),
        elements=len(literals),
        flags=[hyperscan.HS_FLAG_SINGLEMATCH * (literal in once) for literal in literals],
    )

    def find(data: memoryview) -> list[Occurrence]:
        found: list[Occurrence] = []
        append = found.append

        def note(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            append((end - 1, number))

        # Any buffer is accepted, although the annotation is bytes.
        database.scan(data, match_event_handler=note)  # type: ignore[type-var]
        return found

    return find


def turns(literals: tuple[bytes, ...], once: frozenset[bytes] = frozenset()) -> Find:
    """Return the same as `finder`, with one regular expression for each literal."""
    patterns = [re.compile(re.escape(literal)) for literal in literals]
    most = [1 if literal in once else None for literal in literals]

    def find(data: memoryview) -> list[Occurrence]:
        found = [
            (match.end() - 1, number)
            for number, pattern in enumerate(patterns)
            for match in islice(pattern.finditer(data), most[number])
        ]
        return sorted(found, key=itemgetter(0))

    return find


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
