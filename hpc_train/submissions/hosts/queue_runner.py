"""`python -m hpc_train.submissions.hosts.queue_runner HOME QUEUE LOCK`: runs a queue on hosts.

It ends after the last run of its queue. Its lock says that it runs; the lock of a host is held
there, by the run, so that a run goes on and is bounded without this process.
"""

from __future__ import annotations

import io
import os
import shlex
import sys
import tarfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path

import msgspec

from hpc_train.errors import HpcTrainError
from hpc_train.json_files import cannot_write, write_file
from hpc_train.model.plan import LaunchPlan
from hpc_train.model.run import RunFolder
from hpc_train.model.site_facilities import Host, HostList
from hpc_train.model.submission import JobReport, JobState, Submission
from hpc_train.model.value import Value, decode_unit
from hpc_train.regularfile import read_regular
from hpc_train.submissions.hosts.copied_files import files_to_copy
from hpc_train.submissions.hosts.fetched_logs import clear, fetch, fetch_all
from hpc_train.submissions.hosts.host_states import HostState, merged, report_of
from hpc_train.submissions.hosts.rendezvous_check import Place, meeting_fault
from hpc_train.submissions.hosts.run_on_hosts import (
    Taken,
    fault,
    folder_key,
    keep_waiting,
    poll,
    start_on,
    stop,
    take_hosts,
)
from hpc_train.submissions.hosts.started_hosts import StartedHost, StartedHosts, write_hosts
from hpc_train.submissions.hosts.transport import MOST_AT_ONCE, Answer, call, options
from hpc_train.submissions.local_queue import LocalQueue
from hpc_train.submissions.submission_file import mark, read
from hpc_train.subprocesses import exchange

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


# Watches a run on its hosts until no process of it is left, and records the end.
#
# The first host on which it fails, or that is lost, ends it on all: ranks may wait for others up to
# the timeout of their group, and agents of torchrun without a collective for ever.

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


_PATIENCE_S = 3600.0
_NO_PROTOCOL = (2, 12, 127)


class Copy(Value, frozen=True, kw_only=True):
    """What the hosts of a run get: files of `folder`, copied to `target`, which may begin with ~.

    With `shared`, they see the folder itself.
    """

    folder: Path
    target: str
    shared: bool
    files: tuple[str, ...]
    script: bytes


def copy_of(run: RunFolder, plan: LaunchPlan, hosts: HostList, results: Path) -> Copy:
    """Return what the hosts of a run get.

    Raises:
        SubmitError: the working folder is too large.
    """
    folder = Path(plan.workdir or ".").absolute()
    return Copy(
        folder=folder,
        target=f"{hosts.workdir}/work/{folder.name or 'root'}-{folder_key(folder)}",
        shared=hosts.shared,
        files=() if hosts.shared else tuple(files_to_copy(folder, results)),
        script=run.script.read_bytes(),
    )


def put(host: StartedHost, copy: Copy) -> Answer:
    """Copy to one host; the answer has the line `folder`, or says what went wrong."""
    answer = _unpack(host.name, host.folder, {"job.sbatch": copy.script})
    if fault(answer):
        return answer
    if copy.shared:
        return Answer(lines=(("folder", str(copy.folder)),))
    made = call(host.name, "make", copy.target)
    target = made.get("folder")
    if target is None or fault(made):
        return made
    sent = _by_rsync(host.name, target, copy) or _by_tar(host.name, target, copy)
    if fault(sent):
        return sent
    names = b"".join(os.fsencode(name) + b"\0" for name in copy.files)
    pruned = call(host.name, "prune", target, given=names)
    return pruned if fault(pruned) else made


def _by_rsync(host: str, target: str, copy: Copy) -> Answer | None:
    """Send what changed; None if rsync is missing here or there, so that a tar has to do."""
    remote = shlex.join(("ssh", *options()))
    argv = (
        *("rsync", "--archive", "--no-owner", "--no-group", "--protect-args"),
        *("--from0", "--files-from=-"),
        *("--rsh", remote, "--", f"{copy.folder}/", f"{host}:{target}/"),
    )
    names = b"".join(os.fsencode(name) + b"\0" for name in copy.files)
    done = exchange(argv, names, _PATIENCE_S)
    if done.returncode == 0:
        return Answer(lines=(("folder", target),))
    # No rsync here or there (127, 12), or a shell there that prints something first (2, 12).
    if done.returncode in _NO_PROTOCOL and "No space" not in done.stderr:
        return None
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    said = next((line for line in lines if "No space" in line), lines[-1] if lines else "no reason")
    return Answer(lines=(("fault", f"{target}: rsync: {said}"),))


def _by_tar(host: str, target: str, copy: Copy) -> Answer:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name in copy.files:
            archive.add(copy.folder / name, name, recursive=False)
    return call(host, "unpack", target, given=stream.getvalue(), within_s=_PATIENCE_S)


def _unpack(host: str, target: str, files: Mapping[str, bytes]) -> Answer:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return call(host, "unpack", target, given=stream.getvalue())


def faults(hosts: Sequence[StartedHost], answers: Sequence[Answer]) -> str:
    """Return why a copy or start failed, with the names of the hosts; empty if it did not."""
    pairs = zip(hosts, answers, strict=True)
    return "; ".join(f"{host.name}: {fault(answer)}" for host, answer in pairs if fault(answer))


# Their states need no sentence beside the exit code and the first failure in status.json.
_PLAIN = (JobState.COMPLETED, JobState.FAILED)


def record_end(
    run: RunFolder,
    started: StartedHosts,
    states: Sequence[HostState],
    report: JobReport,
) -> None:
    """Fetch the logs, then write the end; a run with a status.json has all its logs.

    Then the hosts need its files no more.

    Raises:
        StoreError, OSError: something cannot be written.
    """
    fetch_all(run, started)
    submission = read(run)
    if (
        submission is not None
        and submission.state is None
        and (report.state not in _PLAIN or report.reason)
    ):
        mark(run, submission, report.state, report.reason)
    status = merged(states, time.time())
    write_file(run.status, msgspec.json.encode(status) + b"\n")
    clear(run, started)


if __name__ == "__main__":
    main(*sys.argv[1:3])
