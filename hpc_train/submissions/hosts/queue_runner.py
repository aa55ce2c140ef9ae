"""`python -m hpc_train.submissions.hosts.queue_runner HOME QUEUE LOCK`: runs a queue on hosts.

It ends after the last run of its queue. Its lock says that it runs; the lock of a host is held
there, by the run, so that a run goes on and is bounded without this process.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path

import msgspec

from hpc_train.errors import HpcTrainError
from hpc_train.json_files import cannot_write
from hpc_train.model.plan import LaunchPlan
from hpc_train.model.run import RunFolder
from hpc_train.model.site_facilities import Host
from hpc_train.model.submission import JobState, Submission
from hpc_train.model.value import Value, decode_unit
from hpc_train.regularfile import read_regular
from hpc_train.submissions.hosts.copy_to_hosts import Copy, copy_of, faults, put
from hpc_train.submissions.hosts.fetched_logs import clear, fetch_all
from hpc_train.submissions.hosts.rendezvous_check import Place, meeting_fault
from hpc_train.submissions.hosts.run_on_hosts import (
    Taken,
    keep_waiting,
    start_on,
    stop,
    take_hosts,
)
from hpc_train.submissions.hosts.started_hosts import StartedHosts, write_hosts
from hpc_train.submissions.hosts.transport import MOST_AT_ONCE, Answer
from hpc_train.submissions.hosts.watched_run import watch
from hpc_train.submissions.local_queue import LocalQueue
from hpc_train.submissions.submission_file import mark, read

# Each process adds up to 2 s, so that those that wait for a host do not ask at the same times.
_PAUSE_S = 2.0
# A host gives up its lock after 5 minutes without a word.
_KEEP_S = 60.0


class HostQueue(Value, frozen=True, kw_only=True):
    """QUEUE.json: the runs in order, the hosts that are used last, and those only used alone."""

    runs: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()


class _Planned(msgspec.Struct):
    """The only part of a manifest that is read here."""

    plan: LaunchPlan


def plan_of(run: RunFolder) -> LaunchPlan:
    """Return the plan of a run.

    Raises:
        OSError, msgspec.DecodeError: its manifest cannot be read.
    """
    content = read_regular(run.manifest)
    return msgspec.json.decode(content, type=_Planned, dec_hook=decode_unit).plan


def main(home: str, queue_id: str) -> None:
    """Run the queue's runs that were not cancelled, one at a time."""
    queue = LocalQueue(home=Path(home), queue_id=queue_id)
    wanted = msgspec.json.decode(queue.file("json").read_bytes(), type=HostQueue)
    # This line gets the log a block of the disk, so that reasons fit when the disk is full.
    sys.stderr.write(f"runs: {len(wanted.runs)}\n")
    if os.fork():
        os._exit(0)
    for run_id in wanted.runs:
        run = RunFolder(path=queue.home / run_id)
        try:
            _run(run, wanted)
        except (HpcTrainError, OSError, msgspec.DecodeError) as failure:
            # A damaged folder must not prevent the others from running.
            if isinstance(failure, OSError):
                failure = cannot_write(Path(failure.filename or run.path), failure)
            _say(run, f"{failure}; mend it before hpctrain retry {queue.home.name}")


def _say(run: RunFolder, text: str) -> None:
    """Write a sentence that `status` prints for a run that has not started."""
    with suppress(OSError):
        sys.stderr.write(f"{run.run_id}: {text}\n")
        sys.stderr.flush()


def _run(run: RunFolder, queue: HostQueue) -> None:
    submission = _wanted(run)
    if submission is None:
        return
    plan = plan_of(run)
    taken = _await_hosts(run, plan, candidates(plan, queue))
    started = taken.started
    if started is None:
        _fail(run, submission, taken.reason)
        return
    write_hosts(run, started)
    reason = _start(run, plan, started)
    if reason:
        stop(started)
        fetch_all(run, started)
        clear(run, started)
        _fail(run, submission, reason)
        return
    watch(run, started, plan.time_s, submission.cluster.poll_s)


def _fail(run: RunFolder, submission: Submission, reason: str) -> None:
    """Record why a run did not start, unless it was cancelled."""
    if _wanted(run):
        with (run.logs / "job.out").open("a", encoding="utf-8") as log:
            log.write(f"hpctrain: {reason}\n")
        mark(run, submission, JobState.FAILED, reason)


def _wanted(run: RunFolder) -> Submission | None:
    """Return the submission of a run that was not cancelled, removed or already started."""
    submission = None if run.status.exists() else read(run)
    return submission if submission is not None and submission.state is None else None


def _await_hosts(run: RunFolder, plan: LaunchPlan, hosts: Sequence[Host]) -> Taken:
    """Wait for the locks of enough hosts, unless it cannot help, or the run is cancelled."""
    said = ""
    while _wanted(run):
        taken = take_hosts(run, plan, hosts)
        if taken.started is not None or taken.lasting:
            return taken
        if taken.reason != said:
            said = taken.reason
            _say(run, said)
        time.sleep(_PAUSE_S + os.getpid() % 20 / 10)
    return Taken(None)


def candidates(plan: LaunchPlan, queue: HostQueue) -> list[Host]:
    """Return the hosts of a plan, those last where earlier runs failed."""
    hosts = plan.host_list.hosts if plan.host_list else ()
    apart = queue.apart if plan.topology.nodes > 1 else ()
    usable = [host for host in hosts if host.name not in apart]
    return sorted(usable, key=lambda host: host.name in queue.exclude)


def _start(run: RunFolder, plan: LaunchPlan, started: StartedHosts) -> str:
    """Copy the files and start the script on all hosts; return why it failed, if it did."""
    if plan.host_list is None:
        raise AssertionError("a plan without hosts")
    places = [Place(host.name, host.address) for host in started.hosts]
    if reason := meeting_fault(places, plan.rendezvous):
        return reason
    copy = copy_of(run, plan, plan.host_list, run.path.parent.parent)
    answers = _copied(started, copy)
    if reason := faults(started.hosts, answers):
        return reason
    if not _wanted(run):
        return "cancelled"
    secrets = {one.name: os.environ.get(one.name, "") for one in plan.secrets if one.file is None}
    folders = {
        host.name: answer.get("folder") or ""
        for host, answer in zip(started.hosts, answers, strict=True)
    }
    return faults(started.hosts, start_on(started, folders, plan, secrets))


def _copied(started: StartedHosts, copy: Copy) -> list[Answer]:
    """Copy to all hosts, which keep their locks meanwhile."""
    with ThreadPoolExecutor(MOST_AT_ONCE) as threads:
        copies = [threads.submit(put, host, copy) for host in started.hosts]
        while wait(copies, _KEEP_S).not_done:
            keep_waiting(started)
    return [one.result() for one in copies]


if __name__ == "__main__":
    main(*sys.argv[1:3])
