"""Sightings -> the root cause: the sightings that may be one, and the first of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from hpc_train.base.value import Value
from hpc_train.diagnosis.diagnosis import FirstFailure
from hpc_train.diagnosis.signatures import Sighting, Signature, is_crash

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
    r"|^(?:jax\._src\.traceback_util\.)?UnfilteredStackTrace: "
    r"|^(?:ray\.exceptions\.)?RayTaskError\(|^Exception:?$"
    r"|^torch\.multiprocessing\.spawn\.Process(?:Raised|Exited)Exception"
    r"|^concurrent\.futures\.process\._RemoteTraceback|^multiprocessing\.pool\.RemoteTraceback"
)
# Errors of a process whose pipe was closed at the other end.
_ECHO_FILE = "multiprocessing/connection.py"

_SLIGHT: frozenset[str] = frozenset({"filesystem", "software", "container"})
# Output that a process may have buffered before it failed: two buffers [B].
_BUFFERED = 2 * 8192

CAUSE, ECHO, RAISED_AGAIN, EXIT, ENDED, CONSEQUENCE = range(6)


class OrderedSighting(Value, frozen=True, kw_only=True):
    """A sighting, its signature, and its position in the order of all files.

    `when` is its time or, if the line has none, that of the previous sighting in the file;
    `work_after` [B] is the amount of log from its line to the last lines of work in the file.
    """

    sighting: Sighting
    signature: Signature
    file: int
    when: str | None = None
    work_after: int = 0

    @property
    def place(self) -> tuple[int, int]:
        """Return its position: file, line."""
        return self.file, self.sighting.line

    @property
    def by_slurm(self) -> bool:
        """Whether the line is a message of Slurm."""
        return self.signature.group == "slurm"

    @property
    def fatal(self) -> bool:
        """Whether a job cannot continue after it."""
        return self.signature.severity == "fatal" and not self.survived

    @property
    def survived(self) -> bool:
        """Whether the work continued after it."""
        # Printed by a tool of the job script, or by a library that has a fallback.
        frame = "file" in dict(self.sighting.groups)
        slight = self.signature.group in _SLIGHT and not frame and self.sighting.rank is None
        return self.work_after > (0 if slight else _BUFFERED)


def cause_level(seen: OrderedSighting) -> int:
    """Return the distance from a root cause.

    CAUSE, ECHO of another failure, RAISED_AGAIN by a waiting process, EXIT code, ENDED by a
    signal, CONSEQUENCE.
    """
    signature = seen.signature
    if signature.kind == "stop":
        return ENDED
    if signature.kind in ("echo", "kill") or (seen.fatal and is_crash(exit_code_of(seen))):
        return ECHO
    if _RAISED.search(seen.sighting.text):
        return RAISED_AGAIN
    if tells_end(seen) and seen.fatal:
        return EXIT
    if signature.role == "consequence":
        return CONSEQUENCE
    text, file = seen.sighting.text, dict(seen.sighting.groups).get("file", "")
    is_echo = file.endswith(_ECHO_FILE) or any(word in text for word in _ECHOES)
    return ECHO if signature.kind == "general" and is_echo else CAUSE


def tells_end(seen: OrderedSighting) -> bool:
    """Whether the line only reports how a process ended."""
    return seen.signature.kind in ("exit", "kill")


def exit_code_of(seen: OrderedSighting) -> str:
    """Return the exit code that a launcher reports, or an empty string."""
    return dict(seen.sighting.groups).get("exitcode", "")


def choose_root(
    candidates: Sequence[OrderedSighting], first_failure: FirstFailure | None
) -> OrderedSighting | None:
    """Return the first failure: of the lowest cause_level, then by time, rank and line.

    Sightings are compared by time in whole seconds, if all of them have one; then by the rank that
    was reported to fail first; then by the order of lines.
    """
    if not candidates:
        return None
    lowest = min(map(cause_level, candidates))
    rivals = specific([seen for seen in candidates if cause_level(seen) == lowest])
    # A missing process is reported by its observer before the scheduler reports its kills.
    if any(seen.signature.late for seen in rivals):
        rivals = [seen for seen in rivals if seen.signature.kind != "general"]
    first = first_failure.rank if first_failure else None
    timed = all(seen.when for seen in rivals)

    def key(seen: OrderedSighting) -> tuple[str, bool, str, int, int]:
        time = (seen.when or "") if timed else ""
        other = first is None or seen.sighting.rank != first
        return time[:19], other, time, *seen.place

    return min(rivals, key=key)


def specific(seen: Iterable[OrderedSighting]) -> list[OrderedSighting]:
    """Drop general sightings of a line that also has a specific one."""
    all_seen = list(seen)
    known = {one.place for one in all_seen if one.signature.kind != "general"}
    return [one for one in all_seen if one.signature.kind != "general" or one.place not in known]


def with_times(seen: Iterable[OrderedSighting]) -> list[OrderedSighting]:
    """Give sightings without a time that of the previous sighting in their file."""
    last: dict[int, str | None] = {}
    timed = []
    for one in seen:
        last[one.file] = one.sighting.time or last.get(one.file)
        timed.append(replace(one, when=last[one.file]))
    return timed


def first_of(seen: Iterable[OrderedSighting]) -> FirstFailure | None:
    """Return the first failure that all agents report; a terminated rank is a victim."""
    named = [
        FirstFailure(
            rank=one.rank,
            host=one.node or "",
            exit_code=int(dict(one.groups)["exitcode"]),
            time=one.time,
            said_by="torchrun",
        )
        for one in (first.sighting for first in seen if is_first(first))
    ]
    guilty = [one for one in named if one.exit_code not in _TERMINATED] or named
    return min(guilty, key=lambda one: one.time or "", default=None)


def is_first(seen: OrderedSighting) -> bool:
    """Whether torchrun reports this failure as the first."""
    return ("root", "yes") in seen.sighting.groups
