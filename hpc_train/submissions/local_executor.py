"""Executor `local`: this machine, one run after the other, in the background."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from hpc_train.errors import SubmitError
from hpc_train.job_state import has_ended
from hpc_train.model.run import RunFolder
from hpc_train.model.submission import JobReport, JobState, Submission
from hpc_train.regularfile import is_there
from hpc_train.submissions.base import Executor, ExecutorOptions
from hpc_train.submissions.local_queue import LocalQueue, is_held, machine_lock
from hpc_train.submissions.run_processes import terminate
from hpc_train.submissions.submission_file import mark, status_of
from hpc_train.submissions.supervisor import new_queue, start_queue, submission_of

_SUPERVISOR = "hpc_train.submissions.local_queue_runner"


class LocalExecutor(Executor):
    """Starts one detached supervisor for the runs of a submission."""

    def submit(self, home: Path, runs: Sequence[RunFolder], options: ExecutorOptions) -> None:
        """Start a supervisor that runs `runs` in order; see `Executor.submit`."""
        _check_machine_lock()
        queue = new_queue(home)
        content = msgspec.json.encode([run.run_id for run in runs])
        start_queue(queue, runs, content, _SUPERVISOR, submission_of(queue, "local"))

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
        return JobReport(state=JobState.LOST, reason=queue.reason(run.run_id))
    return JobReport(state=JobState.RUNNING if run.status.exists() else JobState.PENDING)


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
