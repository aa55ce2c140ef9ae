"""Log files -> their failures, endings and collectives, in one pass over each; the root cause."""

from __future__ import annotations

import dataclasses
import logging
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec.structs import replace

from hpc_train.base.decode import load_data
from hpc_train.base.errors import LogParseError
from hpc_train.base.values import Value
from hpc_train.diagnosis.diagnosis import Evidence, FirstFailure
from hpc_train.diagnosis.signature_matcher import SymptomReader
from hpc_train.diagnosis.signatures import Sighting, is_crash
from hpc_train.diagnosis.waits import CollectiveReader, FlightDump, Progress, Wait
from hpc_train.logs.line import Block, Line, blocks, dispatch
from hpc_train.logs.log_file import open_log, rank_of
from hpc_train.nccl.transport import Tally, TransportReader

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
        self.begins.update(self._repeated(text))
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
            line, counted = self._line, 0
            # The first part contains the line itself.
            at = text.find(first, 0 if self._offset else behind)
            while at >= 0:
                end = at + len(first)
                if text[at - 1 : at] in (b"", b"\n") and text[end : end + 1] in (b"", b"\n", b"\r"):
                    line, counted = line + text.count(b"\n", counted, at), at
                    yield line
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


# Exit codes of ranks that torchrun, or the shell around a rank, terminated.
_TERMINATED = (-15, 143)
_ECHOES = (
    *("DistBackendError", "DistNetworkError", "DistStoreError", "ChildFailedError"),
    *("SignalException", "BrokenPipeError", "ConnectionResetError", "CalledProcessError"),
    *("ProcessExitedException", "ProcessRaisedException", "KeyboardInterrupt"),
    *("Connection closed by", "Connection reset by peer", "communicator was aborted"),
)
# Exceptions of another process or thread, raised again; the cause has its own traceback.
_RAISED = re.compile(
    r"Caught \w{1,80} in (?:replica \d|DataLoader worker process|pin memory thread)"
    r"|^(?:ray\.exceptions\.)?RayTaskError\(|^Exception:?$"
    r"|^torch\.multiprocessing\.spawn\.Process(?:Raised|Exited)Exception"
    r"|^concurrent\.futures\.process\._RemoteTraceback|^multiprocessing\.pool\.RemoteTraceback"
)
# Errors of a process whose pipe was closed at the other end.
_ECHO_FILE = "multiprocessing/connection.py"


CAUSE, ECHO, RAISED_AGAIN, EXIT, ENDED, CONSEQUENCE = range(6)


def cause_level(seen: Sighting) -> int:
    """Return the distance from a root cause.

    CAUSE, ECHO of another failure, RAISED_AGAIN by a waiting process, EXIT code, ENDED by a
    signal, CONSEQUENCE.
    """
    signature = seen.of
    if signature.kind == "stop":
        return ENDED
    if signature.kind in ("echo", "kill") or (seen.fatal and is_crash(seen.exit_code)):
        return ECHO
    if _RAISED.search(seen.text):
        return RAISED_AGAIN
    if seen.tells_end and seen.fatal:
        return EXIT
    if signature.role == "consequence":
        return CONSEQUENCE
    text, file = seen.text, dict(seen.groups).get("file", "")
    is_echo = file.endswith(_ECHO_FILE) or any(word in text for word in _ECHOES)
    return ECHO if signature.kind == "general" and is_echo else CAUSE


def choose_root(
    candidates: Sequence[Sighting], first_failure: FirstFailure | None
) -> Sighting | None:
    """Return the first failure: of the lowest cause_level, then by time, rank and line.

    Sightings are compared by time in whole seconds, if all of them have one; then by the rank that
    was reported to fail first; then by the order of lines.
    """
    candidates = _not_killed_by_srun(candidates)
    if not candidates:
        return None
    lowest = min(map(cause_level, candidates))
    rivals = specific([seen for seen in candidates if cause_level(seen) == lowest])
    # A missing process is reported by its observer before the scheduler reports its kills.
    if any(seen.of.late for seen in rivals):
        rivals = [seen for seen in rivals if seen.of.kind != "general"]
    first = first_failure.rank if first_failure else None
    timed = all(seen.when for seen in rivals)

    def key(seen: Sighting) -> tuple[str, bool, str, int, int]:
        time = (seen.when or "") if timed else ""
        other = first is None or seen.rank != first
        return time[:19], other, time, *seen.place

    return min(rivals, key=key)


def _not_killed_by_srun(candidates: Sequence[Sighting]) -> list[Sighting]:
    """Drop the kills of srun, which ends the other tasks after one has exited with an error.

    A task was killed first only if that is said first, and another task lost it: without such an
    error, the task that exited did so by itself.
    """
    exited: dict[int, int] = {}
    for one in candidates:
        if one.of.kind == "exit" and one.of.group == "slurm":
            exited[one.file] = min(one.line, exited.get(one.file, one.line))
    lost = any(cause_level(one) == ECHO and one.of.kind != "kill" for one in candidates)

    def by_srun(one: Sighting) -> bool:
        first = exited.get(one.file) if one.of.id == "exit_killed" else None
        return first is not None and "tasks" in dict(one.groups) and (first < one.line or not lost)

    return [one for one in candidates if not by_srun(one)]


def specific(seen: Iterable[Sighting]) -> list[Sighting]:
    """Drop general sightings of a line that also has a specific one."""
    all_seen = list(seen)
    known = {one.place for one in all_seen if one.of.kind != "general"}
    return [one for one in all_seen if one.of.kind != "general" or one.place not in known]


def with_times(seen: Iterable[Sighting]) -> list[Sighting]:
    """Give sightings without a time that of the previous sighting in their file."""
    last: dict[int, str | None] = {}
    timed = []
    for one in seen:
        last[one.file] = one.time or last.get(one.file)
        timed.append(replace(one, when=last[one.file]))
    return timed


def first_of(seen: Iterable[Sighting]) -> FirstFailure | None:
    """Return the first failure that all agents report; a terminated rank is a victim."""
    named = [
        FirstFailure(
            rank=one.rank,
            host=one.node or "",
            exit_code=int(dict(one.groups)["exitcode"]),
            time=one.time,
            said_by="torchrun",
        )
        for one in (first for first in seen if first.is_first)
    ]
    guilty = [one for one in named if one.exit_code not in _TERMINATED] or named
    return min(guilty, key=lambda one: one.time or "", default=None)


# Observations in the logs of a job -> the attempts that they show.

LONGEST = 500
# The kind of a start that repeats one of the first lines of its log.
AGAIN = "again"
_STATUS = re.compile(r'"(?:status|success)": ?(?:"\w{1,40}"|true|false)')
EndingKind = Literal["success", "work", "bench", "part", "restart", "failure"]


class Mark(Value, frozen=True, kw_only=True, dict=True):
    """A kind of line by which an attempt ends or starts; every line holds one of the literals."""

    literals: tuple[str, ...]
    pattern: str
    kind: EndingKind | Literal["start"] = "start"
    sure: bool = False

    @cached_property
    def held(self) -> tuple[bytes, ...]:
        return tuple(literal.encode() for literal in self.literals)

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern)


class Marks(Value, frozen=True, kw_only=True):
    """The lines by which attempts start and end, as they are written in the file."""

    schema: Literal[1]
    ends: tuple[Mark, ...]
    starts: tuple[Mark, ...]


@cache
def marks() -> Marks:
    """Return those that come with the package."""
    return load_data("log_marks.yaml", Marks)


class Ending(NamedTuple):
    """A line that reports how the work ended; `restart` cancels the endings before it."""

    kind: EndingKind
    line: int
    text: str
    file: int = 0


class Start(NamedTuple):
    """A line that is printed once, when a job starts; a `sure` start needs no other evidence.

    `number` is that of the start where the line states it, 0 for the first one.
    """

    kind: str
    line: int
    file: int = 0
    sure: bool = False
    number: int = 0


@dataclass
class Observed:
    """Observations in the logs of one job, ordered by file and line; `failed` could not be read.

    `counts` is the number of sightings of each signature; `seen` has the first ones; `inits` are
    the ranks that began and completed NCCL's setup. `starts` are the lines by which an attempt may
    begin; `first_line` is that of the attempt, if it is one of several. `dumps` are those of
    torch's flight recorder.
    """

    sources: Sequence[str] = ()
    seen: list[Sighting] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    progress: list[Progress] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    inits: tuple[int, int] = (0, 0)
    first_line: int = 1
    dumps: Sequence[FlightDump] = ()


class MarkReader:
    """Finds in one log the endings, and the lines by which an attempt may begin."""

    wants_next = False

    def __init__(self, file: int = 0) -> None:
        self._file = file
        held = (literal for one in (*marks().ends, *marks().starts) for literal in one.held)
        self.literals = tuple(dict.fromkeys(held))

    def read(self, line: Line) -> Iterator[Ending | Start]:
        """Yield the ending and the start that the line reports."""
        # A traced script contains the line only as a quotation.
        if line.raw.lstrip().startswith(b"+"):
            return
        for several in (marks().ends, marks().starts):
            for one in several:
                is_held = any(literal in line.raw for literal in one.held)
                match = one.compiled.search(line.text) if is_held else None
                if match is None:
                    continue
                if one.kind == "start":
                    number = int(match.groupdict().get("number") or 0)
                    yield Start(one.literals[0], line.number, self._file, one.sure, number)
                else:
                    # MLPerf's `run_stop` without the rest of its line.
                    found = _STATUS.search(line.text) if "run_stop" in one.literals else None
                    text = f"run_stop, {found[0]}" if found else line.text
                    yield Ending(one.kind, line.number, text[:LONGEST], self._file)
                break


def attempts_of(observed: Observed) -> list[Observed]:
    """Split the observations, in the order of attempts; several files only if they agree."""
    firsts = [list(_firsts(observed, file)) for file in range(len(observed.sources))]
    counts = {len(lines) for lines in firsts if lines}
    if len(counts) != 1:
        return [observed]
    last = counts.pop()
    parts = [_part(observed, firsts, number, last) for number in range(last + 1)]
    full = [part for part in parts[:-1] if part.seen or part.endings]
    return [*full, parts[-1]]


def _firsts(observed: Observed, file: int) -> Iterator[int]:
    """Yield the first line of each attempt but the first one; 0 for attempts before the file."""
    begun: dict[str, int] = {}
    since, found = 1, 0
    seen = [one for one in observed.seen if one.file == file]
    ended = [one.line for one in observed.endings if one.file == file and one.kind != "restart"]

    def over(start: Start, before: int) -> bool:
        """Whether the log reports, before a start, that the previous attempt has ended."""
        between = [one for one in seen if before <= one.line < start.line]
        return any(before <= line < start.line for line in ended) or any(
            # Many ranks may start with the same line: then a launcher or Slurm must report the end.
            cause_level(one) == ENDED
            or (
                one.fatal
                and (start.kind != AGAIN or cause_level(one) == EXIT or one.of.group == "slurm")
            )
            for one in between
        )

    starts = (one for one in observed.starts if one.file == file)
    for start in sorted(starts, key=lambda one: one.line):
        before = begun.get(start.kind, since if start.kind == AGAIN else None)
        is_over = start.line > since if start.sure else before is not None and over(start, before)
        if is_over:
            yield from [0] * (start.number - found - 1)
            yield start.line
            begun, since, found = {}, start.line, max(found + 1, start.number)
        begun[start.kind] = start.line


def _part(observed: Observed, firsts: Sequence[list[int]], number: int, last: int) -> Observed:
    def own(one: Sighting | Ending | Wait | Progress) -> bool:
        lines = firsts[one.file]
        return number == (sum(first <= one.line for first in lines) if lines else last)

    seen = list(filter(own, observed.seen))
    begins = (lines[number - 1] for lines in firsts if lines and number)
    return dataclasses.replace(
        observed,
        # Work after the errors belongs to the next attempt.
        seen=[replace(one, work_after=0) for one in seen] if number < last else seen,
        endings=list(filter(own, observed.endings)),
        waits=list(filter(own, observed.waits)),
        progress=list(filter(own, observed.progress)),
        counts=Counter(one.of.id for one in seen),
        first_line=min(filter(None, begins), default=1),
    )
