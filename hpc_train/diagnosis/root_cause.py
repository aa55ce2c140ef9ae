"""Sightings in the logs of a job -> its attempts, and the root cause: the first that may be one."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Literal, NamedTuple

from msgspec.structs import replace

from hpc_train.base.decode import load_data
from hpc_train.base.values import Value
from hpc_train.diagnosis.diagnosis import FirstFailure
from hpc_train.diagnosis.signatures import Sighting, is_crash
from hpc_train.diagnosis.waits import FlightDump, Progress, Wait
from hpc_train.logs.line import Line

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
