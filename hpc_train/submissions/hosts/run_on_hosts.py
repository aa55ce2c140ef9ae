"""A run on its hosts: locks, start, state, end."""

from __future__ import annotations

import hashlib
import socket
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

from hpc_train.model.plan import LaunchPlan
from hpc_train.model.run import RunFolder
from hpc_train.model.site_facilities import Host
from hpc_train.submissions.hosts.host_states import HostState, states_of
from hpc_train.submissions.hosts.started_hosts import StartedHost, StartedHosts
from hpc_train.submissions.hosts.transport import Answer, at_once, call


class Taken(NamedTuple):
    """The hosts whose locks were taken; none, and `reason`, if there were not enough.

    With `lasting`, there will not be enough by waiting.
    """

    started: StartedHosts | None
    reason: str = ""
    lasting: bool = False


class _Lock(NamedTuple):
    """The lock of one host, with a free port; or why it was not taken."""

    host: StartedHost | None
    port: str = ""
    reason: str = ""
    lasting: bool = False


def take_hosts(run: RunFolder, plan: LaunchPlan, candidates: Sequence[Host]) -> Taken:
    """Take the locks of as many hosts as the plan has nodes, in the order of `candidates`.

    If there are not enough, those that were taken are released, so that two runs that need several
    hosts do not wait for each other.
    """
    wanted = plan.topology.nodes
    taken: list[StartedHost] = []
    port, reasons, left = "", [], len(candidates)
    for host in candidates:
        if len(taken) == wanted:
            break
        lock = _take(host, run, plan)
        if lock.host is None:
            reasons.append(f"{host.name} {lock.reason}")
            left -= lock.lasting
        else:
            port = port or lock.port
            taken.append(lock.host)
    if len(taken) == wanted:
        return Taken(StartedHosts(hosts=tuple(taken), port=port))
    release(StartedHosts(hosts=tuple(taken)))
    return Taken(None, "; ".join(reasons), lasting=left < wanted)


def _take(host: Host, run: RunFolder, plan: LaunchPlan) -> _Lock:
    ports = (str(plan.rendezvous.port), str(plan.rendezvous.ports))
    words = (folder_on(host, run, plan), run.run_id, *ports, str(plan.topology.gpus_per_node))
    answer = call(host.name, "take", *words)
    if reason := fault(answer):
        # A user ends, a host comes back; a folder that cannot be made stays so.
        return _Lock(None, reason=reason, lasting=answer.get("fault") is not None)
    started = StartedHost(
        name=host.name,
        address=host.reached,
        folder=answer.get("folder") or "",
        boot=answer.get("boot") or "",
    )
    return _Lock(started, answer.get("port") or "")


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
