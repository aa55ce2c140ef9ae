"""One run of a queue on hosts: copies, starts and watches it there.

The lock of the queue says that this process runs; the lock of a host is held there, by the run, so
that a run goes on and is bounded without this process.
"""

import io
import os
import shlex
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path

import msgspec

from hpc_train.base.errors import SubmitError
from hpc_train.base.files import files_in, open_to_append
from hpc_train.base.processes import exchange
from hpc_train.hosts.run_on_hosts import (
    HostState,
    Taken,
    fault,
    folder_key,
    keep_waiting,
    merged,
    poll,
    report_of,
    start_on,
    stop,
    take_hosts,
)
from hpc_train.hosts.transport import (
    MOST_AT_ONCE,
    Answer,
    StartedHost,
    StartedHosts,
    call,
    options,
    write_hosts,
)
from hpc_train.plans.plan import LaunchPlan
from hpc_train.runs.executor import working_files
from hpc_train.runs.json_files import mark, write_file
from hpc_train.runs.run import JobReport, JobState, RunFolder, Submission
from hpc_train.runs.run_queue import QueuedRuns, open_submission, plan_of, say, wanted
from hpc_train.sites.profile import Host

# Each process adds up to 2 s, so that those that wait for a host do not ask at the same times.
_PAUSE_S = 2.0
# A host gives up its lock after 5 minutes without a word.
_KEEP_S = 60.0


def run_one(run: RunFolder, queued: QueuedRuns, lock: int) -> None:
    """Run one run of a queue on the first hosts that are free."""
    submission = wanted(run)
    if submission is None:
        return
    plan = plan_of(run)
    taken = _await_hosts(run, plan, candidates(plan, queued))
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
    if wanted(run):
        with open_to_append(run.logs / "job.out") as log:
            log.write(f"hpctrain: {reason}\n".encode())
        mark(run, submission, JobState.FAILED, reason)


def _await_hosts(run: RunFolder, plan: LaunchPlan, hosts: Sequence[Host]) -> Taken:
    """Wait for the locks of enough hosts, unless it cannot help, or the run is cancelled."""
    said = ""
    while wanted(run):
        taken = take_hosts(run, plan, hosts)
        if taken.started is not None or taken.lasting:
            return taken
        if taken.reason != said:
            said = taken.reason
            say(run, said)
        time.sleep(_PAUSE_S + os.getpid() % 20 / 10)
    return Taken(None)


def candidates(plan: LaunchPlan, queued: QueuedRuns) -> list[Host]:
    """Return the hosts of a plan, those last where earlier runs failed."""
    hosts = plan.host_list.hosts if plan.host_list else ()
    apart = queued.apart if plan.topology.nodes > 1 else ()
    usable = [host for host in hosts if host.name not in apart]
    return sorted(usable, key=lambda host: host.name in queued.exclude)


def _start(run: RunFolder, plan: LaunchPlan, started: StartedHosts) -> str:
    """Copy the files and start the script on all hosts; return why it failed, if it did."""
    if plan.host_list is None:
        raise AssertionError("a plan without hosts")
    folder = Path(plan.workdir or ".").absolute()
    target, files = "", []
    if not plan.host_list.shared:
        target = f"{plan.host_list.workdir}/work/{folder.name or 'root'}-{folder_key(folder)}"
        files = files_to_copy(folder, run.path.parent.parent)
    script = (run.script, *run.beside)
    answers = _copied(started, lambda host: put(host, script, folder, target, files))
    if reason := faults(started.hosts, answers):
        return reason
    if not wanted(run):
        return "cancelled"
    secrets = {one.name: os.environ.get(one.name, "") for one in plan.secrets if one.file is None}
    folders = {
        host.name: answer.get("folder") or ""
        for host, answer in zip(started.hosts, answers, strict=True)
    }
    return faults(started.hosts, start_on(started, folders, plan, secrets))


def _copied(started: StartedHosts, copy: Callable[[StartedHost], Answer]) -> list[Answer]:
    """Copy to all hosts, which keep their locks meanwhile."""
    with ThreadPoolExecutor(MOST_AT_ONCE) as threads:
        copies = [threads.submit(copy, host) for host in started.hosts]
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


def watch(run: RunFolder, started: StartedHosts, limit_s: int | None, poll_s: float) -> None:
    """Poll the hosts until the run has ended on all; see the module.

    Raises:
        StoreError, OSError: its end cannot be written.
    """
    silences: dict[str, tuple[float, int]] = {}
    give_up = None if limit_s is None else time.monotonic() + limit_s + _GIVE_UP_S
    while True:
        states = poll({run: started})[run]
        now = time.monotonic()
        silences = {
            state.name: (since, polls + 1)
            for state in states
            if state.silent
            for since, polls in [silences.get(state.name, (now, 0))]
        }
        if all(state.ended for state in states):
            return record_end(run, started, states, report_of(states))
        lost = _lost(started, states, silences, poll_s)
        if lost or (open_submission(run) is None or any(state.failed for state in states)):
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


def _lost(
    started: StartedHosts,
    states: Sequence[HostState],
    silences: dict[str, tuple[float, int]],
    poll_s: float,
) -> JobReport | None:
    """Return the state of a run if one of its hosts is lost.

    `silences` says since when a host has not answered [s, monotonic], and how often.

    That this machine does not reach a host says nothing of it, such as when a laptop sleeps; that
    the other hosts do not reach it either ends the run.
    """
    there = next((state.name for state in states if not state.silent), None)
    for host in started.hosts:
        since, polls = silences.get(host.name, (0.0, 0))
        if polls < _SILENT_POLLS or there is None:
            continue
        silent_s = time.monotonic() - since
        if silent_s < (_SILENT_POLLS - 1) * poll_s:
            continue
        answer = call(there, "reach", host.address)
        # Without an answer, it may reach it.
        if answer.problem or answer.get("reached") is not None:
            continue
        reason = f"{host.name} has not answered for {silent_s:.0f} s, and {there} cannot reach it"
        return JobReport(state=JobState.NODE_FAIL, reason=reason)
    return None


_PATIENCE_S = 3600.0
_NO_PROTOCOL = (2, 12, 127)


def put(
    host: StartedHost, script: Sequence[Path], folder: Path, target: str, files: Sequence[str]
) -> Answer:
    """Copy a script, and `files` of a folder to `target`, to one host.

    `target` may begin with ~; without one, the host sees the folder itself. The answer has the line
    `folder`, or says what went wrong.
    """
    answer = _by_tar(host.name, host.folder, {path.name: path for path in script})
    if fault(answer):
        return answer
    if not target:
        return Answer(lines=(("folder", str(folder)),))
    made = call(host.name, "make", target)
    there = made.get("folder")
    if there is None or fault(made):
        return made
    names = b"".join(os.fsencode(name) + b"\0" for name in files)
    sent = _by_rsync(host.name, there, folder, names) or _by_tar(
        host.name, there, {name: folder / name for name in files}
    )
    if fault(sent):
        return sent
    pruned = call(host.name, "prune", there, given=names)
    return pruned if fault(pruned) else made


def _by_rsync(host: str, target: str, folder: Path, names: bytes) -> Answer | None:
    """Send what changed; None if rsync is missing here or there, so that a tar has to do."""
    remote = shlex.join(("ssh", *options()))
    argv = (
        *("rsync", "--archive", "--no-owner", "--no-group", "--protect-args"),
        *("--from0", "--files-from=-"),
        *("--rsh", remote, "--", f"{folder}/", f"{host}:{target}/"),
    )
    done = exchange(argv, names, _PATIENCE_S)
    if done.returncode == 0:
        return Answer(lines=(("folder", target),))
    # No rsync here or there (127, 12), or a shell there that prints something first (2, 12).
    if done.returncode in _NO_PROTOCOL and "No space" not in done.stderr:
        return None
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    said = next((line for line in lines if "No space" in line), lines[-1] if lines else "no reason")
    return Answer(lines=(("fault", f"{target}: rsync: {said}"),))


def _by_tar(host: str, target: str, files: Mapping[str, Path]) -> Answer:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, path in files.items():
            archive.add(path, name, recursive=False)
    return call(host, "unpack", target, given=stream.getvalue(), within_s=_PATIENCE_S)


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
    submission = open_submission(run)
    if submission is not None and (report.state not in _PLAIN or report.reason):
        mark(run, submission, report.state, report.reason)
    status = merged(states, time.time())
    write_file(run.status, msgspec.json.encode(status) + b"\n")
    clear(run, started)


MOST_MIB = 1024


def files_to_copy(folder: Path, results: Path) -> list[str]:
    """Return the files of a working folder, relative to it, without those below `results`.

    Raises:
        SubmitError: together they are larger than a host should get for each run.
    """
    names = working_files(folder, results)
    size = sum((folder / name).lstat().st_size for name in names)
    if size > MOST_MIB << 20:
        raise SubmitError(
            f"{folder}: {size >> 20} MiB of files, but at most {MOST_MIB} MiB are copied to a host",
            "list data and checkpoints in .gitignore, or state a smaller workdir in the job",
        )
    return names


_FETCH_S = 300.0
# A host sends at most 8 MiB of each log at once.
_MOST_CALLS = 10_000


def fetch(run: RunFolder, started: StartedHosts) -> bool:
    """Append what each log has grown by; return whether any has.

    Host 0's `job.out` keeps its name, that of another host becomes `job-HOST.out`. Logs of ranks
    have different names on each host. A host that does not answer is left out.

    Raises:
        OSError: a log cannot be written here.
    """
    grown = False
    answers = _call_with_sizes("logs", run, started, _FETCH_S)
    for host, answer in zip(started.hosts, answers, strict=True):
        if fault(answer):
            continue
        for name, content in parts(answer.body):
            grown = True
            path = run.logs / (_job_log(host, started) if name == "job.out" else name)
            path.parent.mkdir(exist_ok=True)
            with open_to_append(path) as log:
                log.write(content)
    return grown


def clear(run: RunFolder, started: StartedHosts) -> None:
    """Remove from the hosts what is fetched to its end; a host that does not answer keeps it."""
    _call_with_sizes("clear", run, started)


def fetch_all(run: RunFolder, started: StartedHosts) -> None:
    """Fetch until no log grows any more; see `fetch`."""
    for _ in range(_MOST_CALLS):
        if not fetch(run, started):
            return


def _call_with_sizes(
    verb: str, run: RunFolder, started: StartedHosts, within_s: float = 0
) -> list[Answer]:
    """Call each host with what is here of each of its logs, by its name on the host."""

    def ask(host: StartedHost) -> Answer:
        words: list[str] = []
        own = _job_log(host, started)
        for path in files_in(run.logs, "*.out"):
            with suppress(FileNotFoundError):
                if path.name == own:
                    words += ["job.out", str(path.stat().st_size)]
                elif path.name != "job.out":
                    words += [path.name, str(path.stat().st_size)]
        return call(host.name, verb, host.folder, *words, within_s=within_s)

    return started.each(ask)


def _job_log(host: StartedHost, started: StartedHosts) -> str:
    """Return the name here of the log `job.out` of a host."""
    return "job.out" if host == started.hosts[0] else f"job-{host.name}.out"


def parts(body: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the new bytes of each log; each follows a line `log SIZE NAME`."""
    while body.startswith(b"log "):
        line, _, body = body.partition(b"\n")
        _, size, name = line.decode(errors="replace").split(" ", 2)
        content, body = body[: int(size)], body[int(size) :]
        # A name is that of a file in the folder of logs.
        if "/" not in name and len(content) == int(size):
            yield name, content
