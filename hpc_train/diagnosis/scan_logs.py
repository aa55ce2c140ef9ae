"""Log files -> their failures, endings and collectives; one pass over each."""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from heapq import merge
from itertools import islice
from pathlib import Path

from msgspec.structs import replace

from hpc_train.base.errors import LogParseError
from hpc_train.diagnosis.diagnosis import Evidence
from hpc_train.diagnosis.root_cause import (
    AGAIN,
    ENDED,
    LONGEST,
    Ending,
    EndingKind,
    MarkReader,
    Observed,
    Start,
    cause_level,
)
from hpc_train.diagnosis.signature_matcher import SymptomReader
from hpc_train.diagnosis.signatures import Sighting
from hpc_train.diagnosis.waits import CollectiveReader, Wait
from hpc_train.logs.line import Line
from hpc_train.logs.line_dispatch import Block, blocks, dispatch
from hpc_train.logs.log_file import open_log, rank_of
from hpc_train.nccl.read_nccl_lines import Tally, TransportReader

_log = logging.getLogger(__name__)
# A job of thousands of ranks repeats the same line thousands of times.
_MOST = 5000
_TAIL = 1 << 16
# Of the script on a host without a shared folder: the status of the host, as JSON.
_OWN = "hpctrain: status {"


def scan(files: Sequence[Path], names: Sequence[str], tally: Tally | None = None) -> Observed:
    """Read log files; `names` are their names in evidence.

    A file that cannot be read is skipped with a warning. Lines of NCCL are counted in `tally`.

    Raises:
        LogParseError: none of the files can be read.
    """
    observed = Observed(sources=tuple(names))
    for number, path in enumerate(files):
        try:
            _read(observed, number, path, tally)
        except LogParseError as error:
            observed.failed.append(error.message)
    if observed.failed and len(observed.failed) == len(files):
        raise LogParseError(observed.failed[0])
    for problem in observed.failed:
        _log.warning("%s", problem)
    return observed


def _read(observed: Observed, number: int, path: Path, tally: Tally | None) -> None:
    """Add what one log shows; the lines before a damage are used."""
    name = observed.sources[number]
    symptoms, marks, collectives = SymptomReader(name), MarkReader(number), CollectiveReader(number)
    steps, epochs, nccl = StepReader(number), EpochReader(number), TransportReader(name)
    whole = (steps, epochs) if tally is None else (steps, epochs, nccl)
    readers = (symptoms, marks, collectives)
    own, ended = list[Sighting](), list[Ending]()
    try:
        with open_log(path) as stream:
            for line, asked in dispatch(stream, readers, rank_of(path), whole=whole):
                if 0 in asked:
                    own += (replace(one, file=number) for one in symptoms.read(line))
                for mark in marks.read(line) if 1 in asked else ():
                    ended.append(mark) if isinstance(mark, Ending) else observed.starts.append(mark)
                if 2 in asked and len(observed.waits) + len(observed.progress) < _MOST:
                    for event in collectives.read(line):
                        if isinstance(event, Wait):
                            observed.waits.append(event)
                        else:
                            observed.progress.append(event)
    finally:
        ended += [*steps.endings, *epochs.endings]
        observed.endings += sorted(ended, key=lambda one: one.line)
        observed.seen += own
    observed.counts += symptoms.counts
    if tally is not None:
        tally.add(nccl.tally)
    bad = [one.line for one in own if one.fatal or cause_level(one) == ENDED]
    if bad:
        # Read again, for the errors that the job survived, and for restarts.
        look = look_again(path, bad)
        began, completed = observed.inits
        observed.inits = began + look.inits[0], completed + look.inits[1]
        observed.starts += (Start(AGAIN, line, number) for line in sorted(look.begins))
        after = look.work_after
        observed.seen[len(observed.seen) - len(own) :] = [
            replace(one, work_after=after.get(one.line, 0)) for one in own
        ]


def last_lines(path: Path, source: str, lines: int = 8) -> tuple[Evidence, ...]:
    """Return the last lines of a log that are not empty; none if it cannot be read."""
    tail, number = b"", 1
    with suppress(LogParseError), open_log(path) as stream:
        for data, end in blocks(stream):
            start = max(0, end - _TAIL)
            number += tail.count(b"\n") + data.count(b"\n", 0, start)
            tail = bytes(memoryview(data)[start:end])
    found = [
        Evidence(source=source, line=number + count, text=text[:LONGEST])
        for count, raw in enumerate(tail.split(b"\n"))
        if (text := Line(raw[raw.rstrip().rfind(b"\r") + 1 :]).text.strip())
        and not text.startswith(_OWN)
    ]
    return tuple(found[-lines:])


# Losses, rates and bars: lines that show that the work continues.
_WORK = re.compile(
    rb"(?i)(?:\b|_)(?:loss|ppl|acc\w{0,8})\b['\"]?[ :=]{1,4}\(?-?\d"
    rb"|\d ?(?:it|s|ms|sec|samples?|tokens?|tok|imgs?|images?|examples)/(?:s\b|it\b|sec|step|iter)"
    rb"|\d%\|[^|\r\n]{0,80}\| {0,8}\d{1,12}/\d"
)
# Lines of this form are repeated within a job.
_TROUBLE = re.compile(rb"(?i)error|warn|fail|abort|traceback|^\s|deprecat|kill")
_LINE = re.compile(rb"[^\n]+")
_LETTER = re.compile(rb"[A-Za-z]")
_LAST = 3
_INIT = (b"- Init START", b"- Init COMPLETE")
_FIRST_LINES = 3
_SHORTEST = 12


def look_again(path: Path, lines: Sequence[int]) -> SecondLook:
    """Read a log again for the offsets of some lines; a pipe can be read only once."""
    look = SecondLook(lines)
    with suppress(LogParseError):
        if path.is_file():
            with open_log(path) as stream:
                for data, end in blocks(stream):
                    look.read(bytes(memoryview(data)[:end]))
    return look


class SecondLook:
    """`begins` are the numbers of lines that repeat one of the first lines.

    `inits` is how many ranks began to set up NCCL, and how many completed it.
    """

    def __init__(self, lines: Sequence[int]) -> None:
        self.begins: set[int] = set()
        self.inits = [0, 0]
        self._wanted = deque(sorted(set(lines)))
        self._places: dict[int, int] = {}
        self._work: deque[int] = deque(maxlen=_LAST)
        self._first: tuple[tuple[bytes, int], ...] | None = None
        self._line, self._offset = 1, 0

    @property
    def work_after(self) -> dict[int, int]:
        """The amount of log [B] between a line and the last lines of work, if any."""
        reached = self._work[0] if len(self._work) == _LAST else -1
        return {line: reached - at for line, at in self._places.items() if reached > at}

    def read(self, text: bytes) -> None:
        """Read the next whole lines."""
        if self._first is None:
            self._first = tuple(_first_lines(text))
        for place, word in enumerate(_INIT):
            self.inits[place] += text.count(word)
        self.begins.update(self._line + text.count(b"\n", 0, at) for at in self._repeated(text))
        self._work.extend(self._offset + at for at in _last_work(text))
        line, at, count = self._line, 0, text.count(b"\n")
        # The offsets of the requested lines.
        while self._wanted and self._wanted[0] <= self._line + count:
            while line < self._wanted[0]:
                at = text.find(b"\n", at) + 1
                line += 1
            self._places[self._wanted.popleft()] = self._offset + at
        self._line += count
        self._offset += len(text)

    def _repeated(self, text: bytes) -> Iterator[int]:
        for first, behind in self._first or ():
            # The first part contains the line itself.
            at = text.find(first, 0 if self._offset else behind)
            while at >= 0:
                end = at + len(first)
                if text[at - 1 : at] in (b"", b"\n") and text[end : end + 1] in (b"", b"\n", b"\r"):
                    yield at
                at = text.find(first, end)


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


# `iteration 500/ 500 |`, `iteration: 500 / 500`, `[step=500/500,`. Every step of a long training is
# such a line, so the search is in bytes, where a pattern that begins with a word is fast.
_STEPS = (
    re.compile(rb"iteration:? {1,12}(\d{1,12}) ?/ {0,12}(\d{1,12})\b"),
    re.compile(rb"\[step=(\d{1,12}) ?/ {0,12}(\d{1,12})\b"),
)
_LAST_STEPS = tuple(re.compile(step.pattern.replace(rb"(\d{1,12})\b", rb"\1\b")) for step in _STEPS)
_WORD = re.compile(rb"\w")
# `Epoch 35/35, Train Loss: 0.57`.
_EPOCH = re.compile(
    rb"poch[ :]{1,2}\[?(?P<epoch>\d{1,6}) ?/ ?(?P<of>\d{1,6})\b(?P<rest>[^\r\n]{0,300})"
)
_LAST_EPOCH = re.compile(rb"poch[ :]{1,2}\[?0{0,5}(\d{1,6}) ?/ ?0{0,5}\1\b")
_RESULT = re.compile(rb"(?i)(?:loss|acc|acc[a-z]{1,5}|ppl|f1|auc|m[as]e)['\"]?[ :=]{1,4}\(?-?\d")
# A line of this form is one of many in its epoch.
_INNER = re.compile(rb"(?i)\d ?/ ?\d|\d%\||it/s|step|batch|iter")


class StepReader:
    """Finds the last step in one log, by blocks, and the later steps that cancel it."""

    literals = (b"iteration ", b"iteration: ", b"[step=")

    def __init__(self, file: int = 0) -> None:
        self._file, self.endings = file, list[Ending]()
        self._done = False

    def read_block(self, block: Block, number: int) -> None:
        """Note the last steps; if a lower step follows, the last step was only that of an epoch."""
        text = bytes(memoryview(block.data)[: block.end])
        if not self._done and not any(last.search(text) for last in _LAST_STEPS):
            return
        stop = counted = 0
        for step in merge(*(one.finditer(text) for one in _STEPS), key=re.Match.start):
            at = step.start()
            # The first step on a line is used.
            if at < stop or (text[at] != ord("[") and _WORD.match(text[at - 1 : at])):
                continue
            stop = len(text) if (end := text.find(b"\n", at)) < 0 else end
            stop = end if (end := text.find(b"\r", at, stop)) >= 0 else stop
            last = step[1] == step[2]
            if last or self._done:
                start = 1 + max(text.rfind(b"\n", 0, at), text.rfind(b"\r", 0, at))
                number += text.count(b"\n", counted, start)
                counted = start
                shown = Line(text[start:stop]).text[:LONGEST]
                kind: EndingKind = "work" if last else "restart"
                self.endings.append(Ending(kind, number, shown, self._file))
            self._done = last


class EpochReader:
    """Finds the last epoch in one log, by blocks, and the later epochs that cancel it.

    The last epoch counts only after the one before it, and if its line occurs once: ranks or steps
    may repeat the same line.
    """

    literals = (b"poch ", b"poch: ", b"poch:")

    def __init__(self, file: int = 0) -> None:
        self._file, self.endings = file, list[Ending]()
        self._before = (0, 0)
        self._done = False

    def read_block(self, block: Block, number: int) -> None:
        """Note the last epoch, and one that follows it."""
        text = bytes(memoryview(block.data)[: block.end])
        start = 0 if self._done or _LAST_EPOCH.search(text) else max(0, text.rfind(b"poch"))
        for match in _EPOCH.finditer(text, start):
            epoch = int(match["epoch"]), int(match["of"])
            if self._done:
                self._done = False
                if epoch == self._before:
                    self.endings.pop()
                else:
                    self._note(match, number, "restart")
            elif (
                epoch == (self._before[0] + 1, self._before[1])
                and epoch[0] == epoch[1]
                and _RESULT.search(match["rest"])
                and not _INNER.search(match["rest"])
            ):
                self._note(match, number, "part")
                self._done = True
            self._before = epoch

    def _note(self, match: re.Match[bytes], number: int, kind: EndingKind) -> None:
        text, at = match.string, match.start()
        start = 1 + max(text.rfind(b"\n", 0, at), text.rfind(b"\r", 0, at))
        line = number + text.count(b"\n", 0, start)
        shown = Line(text[start : match.end()]).text[:LONGEST]
        self.endings.append(Ending(kind, line, shown, self._file))
