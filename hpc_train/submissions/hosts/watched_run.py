"""Watches a run on its hosts until no process of it is left, and records the end.

The first host on which it fails, or that is lost, ends it on all: ranks may wait for others up to
the timeout of their group, and agents of torchrun without a collective for ever.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from hpc_train.model.run import RunFolder
from hpc_train.model.submission import JobReport, JobState
from hpc_train.model.value import Value
from hpc_train.submissions.hosts.fetched_logs import fetch
from hpc_train.submissions.hosts.finished_run import record_end
from hpc_train.submissions.hosts.host_states import HostState, report_of
from hpc_train.submissions.hosts.run_on_hosts import poll, stop
from hpc_train.submissions.hosts.started_hosts import StartedHost, StartedHosts
from hpc_train.submissions.hosts.transport import call
from hpc_train.submissions.submission_file import read

_MOST_PERIOD_S = 5.0
# Polls in a row without an answer after which other hosts are asked for a host.
_SILENT_POLLS = 4
# How long a silent host is waited for after it was to end.
_GIVE_UP_S = 600.0


class _Silence(Value, frozen=True, kw_only=True):
    """Since when a host has not answered [s, monotonic], and how often."""

    since: float
    polls: int


def watch(run: RunFolder, started: StartedHosts, limit_s: int | None, poll_s: float) -> None:
    """Poll the hosts until the run has ended on all; see the module.

    Raises:
        StoreError, OSError: its end cannot be written.
    """
    silences: dict[str, _Silence] = {}
    give_up = None if limit_s is None else time.monotonic() + limit_s + _GIVE_UP_S
    while True:
        states = poll({run: started})[run]
        silences = _silences(states, silences)
        if all(state.ended for state in states):
            return record_end(run, started, states, report_of(states))
        lost = _lost(started, states, silences, poll_s)
        if lost or _doomed(run, states):
            stop(started)
            give_up = min(give_up or float("inf"), time.monotonic() + _GIVE_UP_S)
        if lost:
            return record_end(run, started, poll({run: started})[run], lost)
        if give_up is not None and time.monotonic() > give_up:
            # Its state stays unknown until the host answers again.
            return None
        # A full disk here must not end the watch; the end is fetched again.
        with suppress(OSError):
            fetch(run, started)
        time.sleep(min(poll_s, _MOST_PERIOD_S))


def _doomed(run: RunFolder, states: Sequence[HostState]) -> bool:
    """Whether the run was cancelled, or failed on a host."""
    submission = read(run)
    cancelled = submission is None or submission.state is not None
    return cancelled or any(state.failed for state in states)


def _silences(states: Sequence[HostState], before: dict[str, _Silence]) -> dict[str, _Silence]:
    now = time.monotonic()
    found = {}
    for state in filter(lambda state: state.silent, states):
        last = before.get(state.name, _Silence(since=now, polls=0))
        found[state.name] = _Silence(since=last.since, polls=last.polls + 1)
    return found


def _lost(
    started: StartedHosts,
    states: Sequence[HostState],
    silences: dict[str, _Silence],
    poll_s: float,
) -> JobReport | None:
    """Return the state of a run if one of its hosts is lost.

    That this machine does not reach a host says nothing of it, such as when a laptop sleeps; that
    the other hosts do not reach it either ends the run.
    """
    there = next((state.name for state in states if not state.silent), None)
    for host in started.hosts:
        silence = silences.get(host.name)
        if silence is None or silence.polls < _SILENT_POLLS or there is None:
            continue
        silent_s = time.monotonic() - silence.since
        if silent_s < (_SILENT_POLLS - 1) * poll_s or _reaches(there, host):
            continue
        reason = f"{host.name} has not answered for {silent_s:.0f} s, nor does {there} reach it"
        return JobReport(state=JobState.NODE_FAIL, reason=reason)
    return None


def _reaches(name: str, host: StartedHost) -> bool:
    """Whether another host reaches a host; without an answer, it may."""
    answer = call(name, "reach", host.address)
    return bool(answer.problem) or answer.get("reached") is not None
