"""A log with errors -> the work after each error, and where the log restarts."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from hpc_train.errors import LogParseError
from hpc_train.model.value import Value
from hpc_train.records.log_blocks import blocks
from hpc_train.records.log_file import open_log

# Losses, rates and bars: lines that show that the work continues.
_WORK = re.compile(
    rb"(?i)\b(?:loss|ppl|acc\w{0,8})\b['\"]?[ :=]{1,4}\(?-?\d"
    rb"|\d ?(?:it|s|ms|sec|samples?|tokens?|tok|imgs?|images?|examples)/(?:s\b|it\b|sec|step|iter)"
    rb"|\d%\|[^|\r\n]{0,80}\| {0,8}\d{1,12}/\d"
)
# Lines of this form are repeated within a job.
_TROUBLE = re.compile(rb"(?i)error|warn|fail|abort|traceback|^\s|deprecat|kill")
_LINE = re.compile(rb"[^\n]+")
_LETTER = re.compile(rb"[A-Za-z]")
_LAST = 3
_TAIL = 1 << 16
_FIRST_LINES = 3
_SHORTEST = 12


class WorkAfterError(Value, frozen=True, kw_only=True):
    """`work_after` [B] is the amount of log between a line and the last lines of work, if any.

    `begins` are the numbers of lines that repeat one of the first lines.
    """

    work_after: dict[int, int]
    begins: tuple[int, ...] = ()


def look_again(path: Path, lines: Sequence[int]) -> WorkAfterError:
    """Read a log again for the offsets of some lines; a pipe can be read only once."""
    look = _Look(lines)
    with suppress(LogParseError):
        if path.is_file():
            with open_log(path) as stream:
                for data, end in blocks(stream):
                    look.read(bytes(memoryview(data)[:end]))
    return look.result()


class _Look:
    def __init__(self, lines: Sequence[int]) -> None:
        self._wanted = deque(sorted(set(lines)))
        self._places: dict[int, int] = {}
        self._work: deque[int] = deque(maxlen=_LAST)
        self._first: tuple[tuple[bytes, int], ...] | None = None
        self._begins: list[int] = []
        self._line, self._offset = 1, 0

    def read(self, text: bytes) -> None:
        if self._first is None:
            self._first = tuple(_first_lines(text))
        self._begins += (self._line + text.count(b"\n", 0, at) for at in self._repeated(text))
        self._work.extend(self._offset + at for at in _last_work(text))
        count = text.count(b"\n")
        self._place(text, count)
        self._line += count
        self._offset += len(text)

    def _place(self, text: bytes, count: int) -> None:
        """Record the offsets of the requested lines."""
        line, at = self._line, 0
        while self._wanted and self._wanted[0] <= self._line + count:
            while line < self._wanted[0]:
                at = text.find(b"\n", at) + 1
                line += 1
            self._places[self._wanted.popleft()] = self._offset + at

    def _repeated(self, text: bytes) -> Iterator[int]:
        for first, behind in self._first or ():
            # The first part contains the line itself.
            at = text.find(first, 0 if self._offset else behind)
            while at >= 0:
                end = at + len(first)
                if text[at - 1 : at] in (b"", b"\n") and text[end : end + 1] in (b"", b"\n", b"\r"):
                    yield at
                at = text.find(first, end)

    def result(self) -> WorkAfterError:
        reached = self._work[0] if len(self._work) == _LAST else -1
        after = {line: reached - at for line, at in self._places.items() if reached > at}
        return WorkAfterError(work_after=after, begins=tuple(sorted(set(self._begins))))


def _first_lines(text: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield the first lines that may start an attempt, each with the offset of its end."""
    written = (line for line in _LINE.finditer(text) if not line[0].isspace())
    for line in islice(written, _FIRST_LINES):
        content = line[0].rstrip()
        if len(_LETTER.findall(content)) >= _SHORTEST and not _TROUBLE.search(content):
            yield content, line.end()


def _last_work(text: bytes) -> list[int]:
    """Return the offsets of the last lines of work; most are near the end of each block."""
    for size in (_TAIL, len(text)):
        start = max(0, len(text) - size)
        found = [match.start() for match in _WORK.finditer(text, start)][-_LAST:]
        if len(found) == _LAST or start == 0:
            return found
    return []
