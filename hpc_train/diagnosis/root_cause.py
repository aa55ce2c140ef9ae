"""Sightings in the logs of a job -> its attempts, and the root cause: the first that may be one."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Literal

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


class _Mark(Value, frozen=True, kw_only=True, dict=True):
    literals: tuple[str, ...]
    pattern: str

    @cached_property
    def held(self) -> tuple[bytes, ...]:
        return tuple(literal.encode() for literal in self.literals)

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    def match(self, line: Line) -> re.Match[str] | None:
        """Return the match in a line with one of the literals."""
        found = any(literal in line.raw for literal in self.held)
        return self.compiled.search(line.text) if found else None


class _End(_Mark, frozen=True, kw_only=True, dict=True):
    kind: EndingKind


class _Start(_Mark, frozen=True, kw_only=True, dict=True):
    sure: bool = False


class Marks(Value, frozen=True, kw_only=True):
    """The lines by which attempts start and end, as they are written in the file."""

    schema: Literal[1]
    ends: tuple[_End, ...]
    starts: tuple[_Start, ...]


@cache
def marks() -> Marks:
    """Return those that come with the package."""
    return load_data("log_marks.yaml", Marks)


class Ending(Value, frozen=True, kw_only=True):
    """A line that reports how the work ended; `restart` cancels the endings before it."""

    kind: EndingKind
    line: int
    text: str


class Start(Value, frozen=True, kw_only=True):
    """A line that is printed once, when a job starts; a `sure` start needs no other evidence.

    `number` is that of the start where the line states it, 0 for the first one.
    """

    kind: str
    line: int
    sure: bool = False
    number: int = 0


@dataclass
class Observed:
    """Observations in the logs of one job, ordered by file and line; `failed` could not be read.

    `endings` have the number of their file. `counts` is the number of sightings of each signature;
    `seen` has the first ones; `inits` are the ranks that began and completed NCCL's setup. `starts`
    are the lines by which an attempt may begin; `first_line` is that of the attempt, if it is one
    of several. `dumps` are those of torch's flight recorder.
    """

    sources: Sequence[str] = ()
    seen: list[Sighting] = field(default_factory=list)
    endings: list[tuple[int, Ending]] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    progress: list[Progress] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    starts: list[tuple[int, Start]] = field(default_factory=list)
    inits: tuple[int, int] = (0, 0)
    first_line: int = 1
    dumps: Sequence[FlightDump] = ()


class MarkReader:
    """Finds in one log the endings, and the lines by which an attempt may begin."""

    wants_next = False

    def __init__(self) -> None:
        held = (literal for one in (*marks().ends, *marks().starts) for literal in one.held)
        self.literals = tuple(dict.fromkeys(held))

    def read(self, line: Line) -> Iterator[Ending | Start]:
        """Yield the ending and the start that the line reports."""
        # A traced script contains the line only as a quotation.
        if line.raw.lstrip().startswith(b"+"):
            return
        end = next((one for one in marks().ends if one.match(line)), None)
        if end is not None:
            # MLPerf's `run_stop` without the rest of its line.
            found = _STATUS.search(line.text) if "run_stop" in end.literals else None
            text = f"run_stop, {found[0]}" if found else line.text
            yield Ending(kind=end.kind, line=line.number, text=text[:LONGEST])
        for one in marks().starts:
            if match := one.match(line):
                number = int(match.groupdict().get("number") or 0)
                yield Start(kind=one.literals[0], line=line.number, sure=one.sure, number=number)
                return


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
    found = 0
    seen = [one for one in observed.seen if one.file == file]
    ended = [ending for number, ending in observed.endings if number == file]
    since = 1
    starts = [one for number, one in observed.starts if number == file]
    for start in sorted(starts, key=lambda one: one.line):
        before = begun.get(start.kind, since if start.kind == AGAIN else None)
        new = start.line > since if start.sure else False
        if not start.sure and before is not None:
            new = _over(start, before, seen, ended)
        if new:
            yield from [0] * (start.number - found - 1)
            yield start.line
            begun, since, found = {}, start.line, max(found + 1, start.number)
        begun[start.kind] = start.line


def _over(start: Start, since: int, seen: Sequence[Sighting], ended: Sequence[Ending]) -> bool:
    """Whether the log reports, before a start, that the previous attempt has ended."""
    if any(since <= one.line < start.line and one.kind != "restart" for one in ended):
        return True
    between = [one for one in seen if since <= one.line < start.line]

    # Many ranks may start with the same line: then a launcher or Slurm must report the end.
    def ends(one: Sighting) -> bool:
        told = start.kind != AGAIN or cause_level(one) == EXIT or one.of.group == "slurm"
        return cause_level(one) == ENDED or (one.fatal and told)

    return any(map(ends, between))


def _part(observed: Observed, firsts: Sequence[list[int]], number: int, last: int) -> Observed:
    def within(file: int, line: int) -> bool:
        lines = firsts[file]
        attempt = sum(first <= line for first in lines) if lines else last
        return attempt == number

    index = {source: file for file, source in enumerate(observed.sources)}
    seen = [one for one in observed.seen if within(*one.place)]
    if number < last:
        # Work after the errors belongs to the next attempt.
        seen = [replace(one, work_after=0) for one in seen]
    return dataclasses.replace(
        observed,
        seen=seen,
        endings=[item for item in observed.endings if within(item[0], item[1].line)],
        waits=[one for one in observed.waits if within(index[one.source], one.line)],
        progress=[one for one in observed.progress if within(index[one.source], one.line)],
        counts=Counter(one.of.id for one in seen),
        first_line=min(
            (lines[number - 1] for lines in firsts if lines and number and lines[number - 1]),
            default=1,
        ),
    )
