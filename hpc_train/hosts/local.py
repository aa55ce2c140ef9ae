"""Executor `local`: this machine, one run after the other, in the background."""

import os
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from hpc_train.base.errors import SubmitError
from hpc_train.base.files import is_there, lock, open_lock
from hpc_train.base.processes import clean_environment, ended, start
from hpc_train.runs import run_queue
from hpc_train.runs.executor import Executor, ExecutorOptions
from hpc_train.runs.json_files import mark, status_of
from hpc_train.runs.run import JobReport, JobState, RunFolder, Submission
from hpc_train.runs.run_queue import open_submission
from hpc_train.runs.run_states import has_ended

GRACE_S = 10.0


class LocalExecutor(Executor):
    """Starts one detached supervisor for the runs of a submission."""

    def submit(self, home: Path, runs: Sequence[RunFolder], options: ExecutorOptions) -> None:
        """Start a supervisor that runs `runs` in order; see `Executor.submit`."""
        # Now, because the supervisor could report an error only in its log.
        os.close(_open_machine_lock())
        run_queue.start_queue(
            run_queue.new_queue(home), runs, "local", f"{__name__}:run_one", ExecutorOptions()
        )

    def query(self, runs: Mapping[RunFolder, Submission]) -> Mapping[RunFolder, JobReport]:
        """A run is active while its queue's lock is held; see `Executor.query`."""
        queues = {
            run: run_queue.Queue(home=run.path.parent, queue_id=submission.native_id)
            for run, submission in runs.items()
        }
        held = {queue: run_queue.is_held(queue.file("lock")) for queue in set(queues.values())}
        active = [run for run in runs if not has_ended(status_of(run))]
        return {run: _report(run, queues[run], held[queues[run]]) for run in active}

    def cancel(self, home: Path, runs: Mapping[RunFolder, Submission]) -> None:
        """Mark all runs first, so that none of them is started; see `Executor.cancel`."""
        for run, submission in runs.items():
            mark(run, submission, JobState.CANCELLED, "cancelled by the user")
        for run in runs:
            if is_there(run.status):
                terminate(run)


def _report(run: RunFolder, queue: run_queue.Queue, held: bool | None) -> JobReport:
    if held is None:
        return JobReport(state=JobState.UNKNOWN, reason="its queue cannot be read")
    if not held:
        return JobReport(state=JobState.LOST, reason=queue.reason(run.run_id))
    if run.status.exists():
        return JobReport(state=JobState.RUNNING)
    return JobReport(state=JobState.PENDING, reason=queue.reason(run.run_id))


def _machine_lock() -> Path:
    """Return the lock that prevents one user's local runs from overlapping on a machine."""
    return Path(tempfile.gettempdir()) / f"hpctrain-{os.getuid()}.lock"


def _open_machine_lock() -> int:
    """Open the lock of the machine; no other user can, and could hold it.

    Raises:
        SubmitError: it cannot be opened; in a shared folder another user may have made it.
    """
    path = _machine_lock()
    hint = "it prevents your runs from overlapping; set TMPDIR to a folder of your own"
    try:
        descriptor = open_lock(path, 0o600)
        if os.fstat(descriptor).st_uid != os.geteuid():
            os.close(descriptor)
            raise SubmitError(f"{path}: cannot be used: it belongs to another user", hint)
        os.fchmod(descriptor, 0o600)
    except OSError as failure:
        raise SubmitError(f"{path}: cannot be opened: {failure.strerror}", hint) from None
    return descriptor


def run_one(run: RunFolder, queued: run_queue.QueuedRuns, held: int) -> None:
    """Run one run of a queue, with the lock of the machine.

    The job script inherits it and that of the queue, so that no other run starts while one is
    active, even if the supervisor is killed.
    """
    machine = _open_machine_lock()
    try:
        said = f"it waits for the lock {_machine_lock()}, which another run of yours holds"
        lock(machine, lambda: run_queue.say(run, said))
        run_queue.say(run, "")
        submission = run_queue.wanted(run)
        if submission is not None:
            supervise(run, submission, (held, machine))
    finally:
        os.close(machine)


def supervise(run: RunFolder, submission: Submission, locks: tuple[int, int]) -> None:
    """Start the script, enforce its time limit, and leave no process behind."""
    environment = {**clean_environment(os.environ), "HPCTRAIN_RUN": str(run.path.absolute())}
    limit = run_queue.plan_of(run).time_s
    begin = time.monotonic()
    script = start(["bash", str(run.script.absolute())], run.logs / "job.out", environment, locks)
    try:
        while not ended(script, 0.2):
            if limit is not None and time.monotonic() - begin > limit:
                mark(run, submission, JobState.TIMEOUT, f"the time limit of {limit} s was reached")
                terminate(run)
            elif open_submission(run) is None:
                terminate(run)
    finally:
        kill(run)
    if not has_ended(status_of(run)) and open_submission(run) is not None:
        code = script.returncode
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        mark(run, submission, JobState.FAILED, f"the job script ended with {how}, without a status")


def processes_of(run: RunFolder) -> tuple[int, ...]:
    """Return the ids of the live processes with this run's HPCTRAIN_RUN, in any session."""
    mark = f"HPCTRAIN_RUN={run.path.absolute()}".encode()
    pids = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    return tuple(pid for pid in pids if mark in _words(pid, "environ"))


def terminate(run: RunFolder, grace_s: float = GRACE_S) -> None:
    """Terminate the job script, which terminates the launcher; kill the remaining processes."""
    found, script = processes_of(run), str(run.script.absolute()).encode()
    # The script leads the session of the run.
    leaders = [pid for pid in found if script in _words(pid, "cmdline")]
    _signal([min(leaders)] if leaders else found, signal.SIGTERM)
    _await_end(run, grace_s)
    kill(run)


def kill(run: RunFolder) -> None:
    """Kill every process of a run; a remaining rank would disturb the next measurement."""
    _signal(processes_of(run), signal.SIGKILL)
    _await_end(run, GRACE_S)


def _await_end(run: RunFolder, within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while processes_of(run) and time.monotonic() < deadline:
        time.sleep(0.05)


def _words(pid: int, name: str) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes().split(b"\0")
    except OSError:
        return []


def _signal(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
