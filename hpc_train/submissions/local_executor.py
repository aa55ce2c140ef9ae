"""Executor `local`: this machine, one run after the other, in the background."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from hpc_train.errors import StoreError, SubmitError
from hpc_train.job_state import has_ended
from hpc_train.model.run import RunFolder
from hpc_train.model.submission import JobReport, JobState, Submission
from hpc_train.regularfile import is_there
from hpc_train.submissions.base import Executor, ExecutorOptions
from hpc_train.submissions.local_queue import FOLDER, LocalQueue, is_held, machine_lock, take
from hpc_train.submissions.run_processes import terminate
from hpc_train.submissions.submission_file import mark, status_of, write
from hpc_train.subprocesses import clean_environment, ended, start

_START_S = 60.0


class LocalExecutor(Executor):
    """Starts one detached supervisor for the runs of a submission."""

    def submit(self, home: Path, runs: Sequence[RunFolder], options: ExecutorOptions) -> None:
        """Start a supervisor that runs `runs` in order; see `Executor.submit`."""
        _check_machine_lock()
        now = datetime.now(timezone.utc)
        queue = LocalQueue(home=home, queue_id=f"{now:%Y%m%d-%H%M%S}-{os.getpid()}")
        try:
            (home / FOLDER).mkdir(parents=True, exist_ok=True)
            lock = take(queue.file("lock"), wait=True)
            queue.file("json").write_bytes(msgspec.json.encode([run.run_id for run in runs]))
        except OSError as failure:
            raise StoreError(f"{home / FOLDER}: cannot be written: {failure.strerror}") from None
        try:
            for run in runs:
                write(
                    run,
                    Submission(
                        executor="local",
                        native_id=queue.queue_id,
                        submitted=now.isoformat(timespec="seconds"),
                    ),
                )
            self._start(queue, lock)
        except OSError as failure:
            raise SubmitError(f"{home}: cannot start: {failure.strerror or failure}") from None

    def _start(self, queue: LocalQueue, lock: int | None) -> None:
        """Pass the lock to the supervisor, without releasing it in between."""
        if lock is None:
            raise SubmitError(f"{queue.file('lock')}: another process holds it")
        argv = [
            *(sys.executable, "-m", "hpc_train.submissions.local_queue_runner"),
            *(str(queue.home.absolute()), queue.queue_id, str(lock)),
        ]
        supervisor = start(argv, queue.file("log"), clean_environment(os.environ), [lock])
        os.close(lock)
        if not ended(supervisor, _START_S) or supervisor.returncode != 0:
            raise SubmitError(f"{queue.home}: the supervisor did not start", _last_line(queue))

    def query(self, runs: Mapping[RunFolder, Submission]) -> Mapping[RunFolder, JobReport]:
        """A run is active while its queue's lock is held; see `Executor.query`."""
        queues = {
            run: LocalQueue(home=run.path.parent, queue_id=submission.native_id)
            for run, submission in runs.items()
        }
        held = {queue: is_held(queue.file("lock")) for queue in set(queues.values())}
        active = [run for run in runs if not has_ended(status_of(run))]
        return {run: _report(run, queues[run], held[queues[run]]) for run in active}

    def cancel(self, home: Path, runs: Mapping[RunFolder, Submission]) -> None:
        """Mark all runs first, so that none of them is started; see `Executor.cancel`."""
        for run, submission in runs.items():
            mark(run, submission, JobState.CANCELLED, "cancelled by the user")
        for run in runs:
            if is_there(run.status):
                terminate(run)


def _report(run: RunFolder, queue: LocalQueue, held: bool | None) -> JobReport:
    if held is None:
        return JobReport(state=JobState.UNKNOWN, reason="its queue cannot be read")
    if not held:
        return JobReport(state=JobState.LOST, reason=_reason_in_log(queue, run.run_id))
    return JobReport(state=JobState.RUNNING if run.status.exists() else JobState.PENDING)


def _reason_in_log(queue: LocalQueue, run_id: str) -> str:
    """Return why the supervisor did not run it; empty if it did, or does not say."""
    with suppress(OSError):
        for line in queue.file("log").read_text(errors="replace").splitlines():
            if line.startswith(f"{run_id}: "):
                return line.removeprefix(f"{run_id}: ")
    return ""


def _check_machine_lock() -> None:
    """Check the lock now, because the supervisor could report an error only in its log.

    Raises:
        SubmitError: the lock cannot be opened; in a shared folder another user may have made it.
    """
    try:
        os.close(os.open(machine_lock(), os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o644))
    except OSError as failure:
        raise SubmitError(
            f"{machine_lock()}: cannot be opened: {failure.strerror}",
            "it prevents your runs from overlapping; set TMPDIR to a folder of your own",
        ) from None


def _last_line(queue: LocalQueue) -> str:
    lines = queue.file("log").read_text(errors="replace").splitlines()
    return lines[-1] if lines else f"see {queue.file('log')}"
