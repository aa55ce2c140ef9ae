"""A run on its hosts: whether they reach one another, locks, start, state, end."""

from __future__ import annotations

import hashlib
import socket
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

import msgspec

from hpc_train.base.values import Value
from hpc_train.hosts.transport import Answer, StartedHost, StartedHosts, at_once, call
from hpc_train.plans.plan import LaunchPlan
from hpc_train.runs.run import Failure, JobReport, JobState, JobStatus, RunFolder
from hpc_train.sites.partition import Rendezvous
from hpc_train.sites.profile import Host


class Taken(NamedTuple):
    """The hosts whose locks were taken; none, and `reason`, if there were not enough.

    With `lasting`, there will not be enough by waiting.
    """

    started: StartedHosts | None
    reason: str = ""
    lasting: bool = False


def take_hosts(run: RunFolder, plan: LaunchPlan, candidates: Sequence[Host]) -> Taken:
    """Take the locks of as many hosts as the plan has nodes, in the order of `candidates`.

    If there are not enough, those that were taken are released, so that two runs that need several
    hosts do not wait for each other.
    """
    wanted, ports = plan.topology.nodes, plan.rendezvous
    taken: list[StartedHost] = []
    port, reasons, left = "", [], len(candidates)
    for host in candidates:
        if len(taken) == wanted:
            break
        numbers = map(str, (ports.port, ports.ports, plan.topology.gpus_per_node))
        answer = call(host.name, "take", folder_on(host, run, plan), run.run_id, *numbers)
        if reason := fault(answer):
            reasons.append(f"{host.name} {reason}")
            # A user ends, a host comes back; a folder that cannot be made stays so.
            left -= answer.get("fault") is not None
            continue
        port = port or answer.get("port") or ""
        folder, boot = answer.get("folder") or "", answer.get("boot") or ""
        taken.append(StartedHost(name=host.name, address=host.reached, folder=folder, boot=boot))
    if len(taken) == wanted:
        return Taken(StartedHosts(hosts=tuple(taken), port=port))
    release(StartedHosts(hosts=tuple(taken)))
    return Taken(None, "; ".join(reasons), lasting=left < wanted)


def folder_on(host: Host, run: RunFolder, plan: LaunchPlan) -> str:
    """Return the folder of a run on a host; on a shared file system each host has one of its own.

    Two runs of one name, in different result folders, may use one host.
    """
    if plan.host_list is None or plan.host_list.shared:
        return f"{run.path.absolute()}/hosts/{host.name}"
    return f"{plan.host_list.workdir}/runs/{plan.name}/{run.run_id}-{folder_key(run.path)}"


def folder_key(path: Path) -> str:
    """Return eight hex digits of the path on this machine."""
    text = f"{socket.gethostname()}:{path.absolute()}"
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def fault(answer: Answer) -> str:
    """Return why a host could not do what it was asked; empty if it did."""
    if answer.problem:
        return f"does not answer: {answer.problem}"
    if (holder := answer.get("busy")) is not None:
        return f"is in use by {holder or 'another user'}"
    return busy_gpus(answer) or answer.get("fault") or ""


def busy_gpus(answer: Answer) -> str:
    """Return how much memory of a host's GPUs is in use; empty if all are free."""
    found = [text.split() for word, text in answer.lines if word == "gpu_in_use"]
    parts = [
        f"{int(used) / 1024:.1f} of {int(total) / 1024:.1f} GiB of GPU {number}"
        for number, used, total in found
    ]
    return f"has {', '.join(parts)} in use" if parts else ""


def start_on(
    started: StartedHosts,
    folders: Mapping[str, str],
    plan: LaunchPlan,
    secrets: Mapping[str, str],
) -> list[Answer]:
    """Start the script on all hosts, each in its working folder; secrets go through pipes only."""
    names = ",".join(host.name for host in started.hosts)
    addresses = ",".join(host.address for host in started.hosts)
    # What a host says to another one of the run, and the answer.
    said = f"{token_hex(16)},{token_hex(16)}"
    ranks = {host.name: rank for rank, host in enumerate(started.hosts)}

    def words(host: StartedHost) -> tuple[str, ...]:
        return (
            f"limit={plan.time_s or 0}",
            f"HPCTRAIN_NODE_RANK={ranks[host.name]}",
            f"HPCTRAIN_HOSTS={names}",
            f"HPCTRAIN_ADDRESSES={addresses}",
            f"HPCTRAIN_PORT={started.port}",
            f"HPCTRAIN_WORDS={said}",
            f"HPCTRAIN_WORKDIR={folders[host.name]}",
            *(f"{name}={value}" for name, value in secrets.items()),
            "start",
        )

    return started.each(lambda host: call(host.name, "start", host.folder, *words(host)))


def keep_waiting(started: StartedHosts) -> None:
    """Tell the hosts that the start will follow."""
    started.each(lambda host: call(host.name, "start", host.folder, "wait"))


def release(started: StartedHosts) -> None:
    """Give up the locks of hosts on which nothing was started."""
    started.each(lambda host: call(host.name, "start", host.folder, "end"))


def stop(started: StartedHosts) -> dict[str, str]:
    """End a run on all hosts; return the hosts where it may continue, with the reason."""
    answers = started.each(lambda host: call(host.name, "stop", host.folder))
    return {
        host.name: fault(answer) or "a process cannot be ended"
        for host, answer in zip(started.hosts, answers, strict=True)
        if fault(answer) or answer.get("alive") is not None
    }


def poll(runs: Mapping[RunFolder, StartedHosts]) -> dict[RunFolder, list[HostState]]:
    """Return the states of runs on their hosts, with one call of each host."""
    on_host: dict[str, dict[RunFolder, StartedHost]] = defaultdict(dict)
    for run, started in runs.items():
        for host in started.hosts:
            on_host[host.name][run] = host
    folders = [(name, [host.folder for host in group.values()]) for name, group in on_host.items()]
    answers = at_once(lambda one: call(one[0], "poll", *one[1]), folders)
    states: dict[RunFolder, dict[str, HostState]] = defaultdict(dict)
    for group, answer in zip(on_host.values(), answers, strict=True):
        for run, state in zip(group, states_of(list(group.values()), answer), strict=True):
            states[run][state.name] = state
    return {run: [states[run][host.name] for host in one.hosts] for run, one in runs.items()}


# Exit codes of a script that was ended, after another one failed or at the time limit.
_ENDED = (124, 137, 143)


class HostState(Value, frozen=True, kw_only=True):
    """One host of a run.

    `silent`: why it did not answer. `code` is the exit code of the script, None before its end.
    """

    name: str
    silent: str = ""
    restarted: bool = False
    alive: bool = False
    status: JobStatus | None = None
    code: int | None = None
    timed_out: bool = False

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
    return HostState(
        name=host.name,
        restarted=bool(host.boot) and part.get("boot") != host.boot and not code,
        alive="alive" in part,
        status=_status(part.get("status", "")),
        code=int(code) if code.isdecimal() else None,
        timed_out=timed_out == "1",
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
    names = _names(state for state in states if state.restarted)
    restarted = names and f"{names} was restarted during the run"
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
    killed = _names(state for state in states if state.code is None)
    reason = f"all its processes on {killed} were killed, or the disk there is full"
    return JobReport(state=JobState.FAILED, reason=reason if killed else "", nodes=nodes)


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


ADVICE = "check the address of the host in the profile, and the firewalls between the hosts"


class Gap(NamedTuple):
    """One host cannot connect to another, at an address and port."""

    of: str
    to: str
    place: str

    def said_of(self, host: str) -> str:
        """Return what is wrong with one of the two hosts."""
        if host == self.of:
            return f"cannot connect to {self.place} of {self.to}"
        return f"is not reached by {self.of} at {self.place}"


def apart(hosts: Sequence[Host], found: Sequence[Gap]) -> dict[str, str]:
    """Return hosts without which no gap is left, and why: first those with the most gaps.

    Of two with as many, it is the later one in the list.
    """
    left, wrong = list(found), dict[str, str]()
    while left:
        counts = Counter(name for gap in left for name in (gap.of, gap.to))
        worst = max(reversed(hosts), key=lambda host: counts[host.name]).name
        own = [gap for gap in left if worst in (gap.of, gap.to)]
        wrong[worst] = own[0].said_of(worst)
        left = [gap for gap in left if gap not in own]
    return wrong


def gaps(hosts: Sequence[Host], ports: Rendezvous) -> list[Gap]:
    """Let each host listen at a free port, and all others connect to it.

    Nothing is known of the connections to a host without python3.
    """
    if len(hosts) < 2:
        return []
    words = (str(ports.port), str(ports.ports))
    answers = at_once(lambda host: call(host.name, "listen", *words), hosts)
    listening = [
        (host, answer)
        for host, answer in zip(hosts, answers, strict=True)
        if answer.get("pid") is not None
    ]
    places = {f"{host.reached}:{one.get('port')}": host for host, one in listening}
    try:
        answers = at_once(lambda host: _connect(host, places), hosts)
    finally:
        at_once(lambda one: call(one[0].name, "unlisten", one[1].get("pid") or ""), listening)
    return [
        Gap(of=host.name, to=places[text].name, place=text)
        for host, answer in zip(hosts, answers, strict=True)
        for word, text in sorted(answer.lines)
        if word == "unreached" and text in places
    ]


def _connect(host: Host, places: dict[str, Host]) -> Answer:
    others = [place.rsplit(":", 1) for place, other in places.items() if other != host]
    return call(host.name, "connect", *(word for place in others for word in place))
