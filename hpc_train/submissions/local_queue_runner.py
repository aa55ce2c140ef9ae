"""`python -m hpc_train.submissions.local_queue_runner HOME QUEUE LOCK`: runs a queue, then ends.

It is not a service: it ends after the last run of its queue. It holds the lock of the queue and,
during a run, the lock of the machine. The job script inherits both, so that no other run starts
while one is active, even if the supervisor is killed.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from hpc_train.errors import StoreError
from hpc_train.job_state import has_ended
from hpc_train.json_files import cannot_write
from hpc_train.model.plan import LaunchPlan
from hpc_train.model.run import RunFolder
from hpc_train.model.submission import JobState, Submission
from hpc_train.model.value import decode_unit
from hpc_train.regularfile import read_regular
from hpc_train.submissions.local_queue import LocalQueue, machine_lock, take
from hpc_train.submissions.run_processes import kill, terminate
from hpc_train.submissions.submission_file import mark, read, status_of
from hpc_train.subprocesses import clean_environment, ended, start


class _Limit(msgspec.Struct):
    """The only part of a manifest that is read here."""

    plan: LaunchPlan


def main(home: str, queue_id: str, lock: str) -> None:
    """Run the queue's runs that were not cancelled, one at a time."""
    queue = LocalQueue(home=Path(home), queue_id=queue_id)
    run_ids = msgspec.json.decode(queue.file("json").read_bytes(), type=list[str])
    # This line gets the log a block of the disk, so that reasons fit when the disk is full.
    sys.stderr.write(f"runs: {len(run_ids)}\n")
    _detach()
    for run_id in run_ids:
        run = RunFolder(path=queue.home / run_id)
        machine = take(machine_lock(), wait=True)
        if machine is None:
            raise AssertionError("a blocking lock was not waited for")
        try:
            submission = _wanted(run)
            if submission is not None:
                _supervise(run, submission, (int(lock), machine))
        except (OSError, StoreError, msgspec.DecodeError) as failure:
            # A damaged folder must not prevent the others from running.
            with suppress(OSError):
                sys.stderr.write(f"{run_id}: {_reason(failure, queue.home)}\n")
        os.close(machine)


def _reason(failure: Exception, home: Path) -> str:
    """Return the sentence that `status` prints."""
    if isinstance(failure, OSError):
        failure = cannot_write(Path(failure.filename or home), failure)
    return f"{failure}; mend it before hpctrain retry {home.name}"


def _detach() -> None:
    """Let the submitting process continue, after everything has been checked."""
    if os.fork():
        os._exit(0)


def _wanted(run: RunFolder) -> Submission | None:
    """Return the submission of a run that was not cancelled, removed or already started."""
    submission = None if run.status.exists() else read(run)
    return submission if submission is not None and submission.state is None else None


def _supervise(run: RunFolder, submission: Submission, locks: tuple[int, int]) -> None:
    """Start the script, enforce its time limit, and leave no process behind."""
    environment = {**clean_environment(os.environ), "HPCTRAIN_RUN": str(run.path.absolute())}
    limit = _time_limit(run)
    begin = time.monotonic()
    script = start(["bash", str(run.script.absolute())], run.logs / "job.out", environment, locks)
    try:
        while not ended(script, 0.2):
            if limit is not None and time.monotonic() - begin > limit:
                mark(run, submission, JobState.TIMEOUT, f"the time limit of {limit} s was reached")
                terminate(run)
            elif _cancelled(run):
                terminate(run)
    finally:
        kill(run)
    if not has_ended(status_of(run)) and not _cancelled(run):
        code = script.returncode
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        mark(run, submission, JobState.FAILED, f"the job script ended with {how}, without a status")


def _time_limit(run: RunFolder) -> int | None:
    manifest = msgspec.json.decode(read_regular(run.manifest), type=_Limit, dec_hook=decode_unit)
    return manifest.plan.time_s


def _cancelled(run: RunFolder) -> bool:
    """Whether the run was cancelled, or its folder removed."""
    submission = read(run)
    return submission is None or submission.state is not None


if __name__ == "__main__":
    main(*sys.argv[1:4])
