"""What the hosts say of a run -> one state, one reason and one status; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

import msgspec

from hpc_train.model.run import Failure, JobStatus
from hpc_train.model.submission import JobReport, JobState
from hpc_train.model.value import Value
from hpc_train.submissions.hosts.started_hosts import StartedHost
from hpc_train.submissions.hosts.transport import Answer

# Exit codes of a script that was ended, after another one failed or at the time limit.
_ENDED = (124, 137, 143)


class HostState(Value, frozen=True, kw_only=True):
    """One host of a run.

    `silent`: why it did not answer. `code` is the exit code of the script, None before its end;
    `room` the free space of its file system [KiB].
    """

    name: str
    silent: str = ""
    restarted: bool = False
    alive: bool = False
    status: JobStatus | None = None
    code: int | None = None
    timed_out: bool = False
    room: int | None = None

    @property
    def ended(self) -> bool:
        """Whether no process of the run is left on the host."""
        return not self.silent and (self.restarted or not self.alive)

    @property
    def failed(self) -> bool:
        """Whether the run ended on the host, and not with exit code 0."""
        return self.ended and self.code != 0


def states_of(hosts: Sequence[StartedHost], answer: Answer) -> list[HostState]:
    """Return the states of several runs on one host, for which `poll` was called, in its order."""
    if answer.problem:
        return [HostState(name=host.name, silent=answer.problem) for host in hosts]
    parts: list[dict[str, str]] = []
    for word, text in answer.lines:
        if word == "run":
            parts.append({})
        elif parts:
            parts[-1][word] = text
    return [_state(host, part) for host, part in zip(hosts, parts, strict=True)]


def _state(host: StartedHost, part: dict[str, str]) -> HostState:
    code, _, timed_out = part.get("end", "").partition(" ")
    room = part.get("room", "")
    return HostState(
        name=host.name,
        restarted=bool(host.boot) and part.get("boot") != host.boot and not code,
        alive="alive" in part,
        status=_status(part.get("status", "")),
        code=int(code) if code.isdecimal() else None,
        timed_out=timed_out == "1",
        room=int(room) if room.isdecimal() else None,
    )


def _status(text: str) -> JobStatus | None:
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(text, type=JobStatus)
    return None


def report_of(states: Sequence[HostState]) -> JobReport:
    """Return the state of a run on its hosts; a silent host may still run it.

    COMPLETED, FAILED, TIMEOUT and NODE_FAIL are final: no process is left on any host.
    """
    nodes = ",".join(state.name for state in states)
    restarted = _restarted(states)
    silent = [state for state in states if state.silent]
    if silent:
        reason = f"{_names(silent)} does not answer: {silent[0].silent}"
        return JobReport(state=JobState.UNKNOWN, reason=reason, nodes=nodes)
    if not all(state.ended for state in states):
        return JobReport(state=JobState.RUNNING, reason=restarted, nodes=nodes)
    if restarted:
        return JobReport(state=JobState.NODE_FAIL, reason=restarted, nodes=nodes)
    if any(state.timed_out for state in states):
        reason = "the time limit was reached"
        return JobReport(state=JobState.TIMEOUT, reason=reason, nodes=nodes)
    if not any(state.failed for state in states):
        return JobReport(state=JobState.COMPLETED, nodes=nodes)
    return JobReport(state=JobState.FAILED, reason=_cut_off(states), nodes=nodes)


def _restarted(states: Iterable[HostState]) -> str:
    names = _names(state for state in states if state.restarted)
    return names and f"{names} was restarted during the run"


def _cut_off(states: Sequence[HostState]) -> str:
    """Return why a host has no end of the run; empty if each has one."""
    for state in states:
        if state.code is not None:
            continue
        if state.room == 0:
            return f"its end could not be written on {state.name}: the disk is full"
        return f"all its processes on {state.name} were killed, also the one that waits for its end"
    return ""


def _names(states: Iterable[HostState]) -> str:
    return ", ".join(state.name for state in states)


def merged(states: Sequence[HostState], now: float) -> JobStatus:
    """Return one status.json for the hosts of a run that has ended.

    Exit code and failure are those of the rank, or else the script, that failed first, not of those
    that were ended because of it.
    """
    known = [state.status for state in states if state.status is not None]
    first = known[0] if known else JobStatus(started=now)
    failure = _first(status.failure for status in known)
    bad = dict.fromkeys(name for status in known for name in status.bad_nodes.split(",") if name)
    return msgspec.structs.replace(
        first,
        started=min((status.started for status in known), default=now),
        ended=max((status.ended or now for status in known), default=now),
        exit_code=_code(states, failure),
        nodes=",".join(state.name for state in states),
        failure=failure,
        bad_nodes=",".join(bad),
    )


def _first(failures: Iterable[Failure | None]) -> Failure | None:
    found = [failure for failure in failures if failure is not None]
    return min(found, key=lambda failure: failure.time or 0.0, default=None)


def _code(states: Sequence[HostState], failure: Failure | None) -> int:
    codes = [1 if state.code is None else state.code for state in states]
    codes = [code for code in codes if code]
    if not codes:
        return 0
    named = [state.code for state in states if failure is not None and state.name == failure.host]
    own = [code for code in (*named, *codes) if code and code not in _ENDED]
    return own[0] if own else codes[0]
