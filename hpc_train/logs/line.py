"""Line: a line of a log without prefixes, colours and invalid characters, and its rank and host."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import islice
from operator import itemgetter

import msgspec

from hpc_train.base.regex import TimedPattern

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
# Length [characters] in which a site's pattern, which may be unbounded, is searched.
_LONGEST = 512
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


def peel(text: str, site: TimedPattern | None = None) -> Prefix:
    """Remove the prefixes of a line, in any order; the outermost rank is used.

    `site` matches a prefix that only this site uses; its groups may be `rank`, `local` and `host`.
    """
    if site is None and not _may_begin(text, 0):
        return Prefix(text)
    found: dict[str, str] = {}
    position = 0
    while site is not None or _may_begin(text, position):
        match = site.match(text, position, position + _LONGEST) if site is not None else None
        match = match or _PREFIX.match(text, position)
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
    """Return rank, local rank, task and host; the groups of a site may hold no number."""
    found = dict(items)

    def first(*kinds: str) -> int | None:
        texts = (found.get(kind, "") for kind in kinds)
        return next((int(one) for one in texts if one.isdecimal() and len(one) < 8), None)

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

    def peel(self, site: TimedPattern) -> Line:
        """Remove the prefixes; `site` matches a prefix that only this site uses."""
        self._prefix = peel(clean(self.raw), site)
        return self

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
