"""Starts the detached process that runs a queue, and passes it the lock of the queue."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from hpc_train.errors import StoreError, SubmitError
from hpc_train.model.run import RunFolder
from hpc_train.model.submission import SlurmEndpoint, Submission
from hpc_train.submissions.local_queue import FOLDER, LocalQueue, take
from hpc_train.submissions.submission_file import write
from hpc_train.subprocesses import clean_environment, ended, start

_START_S = 60.0


def new_queue(home: Path) -> LocalQueue:
    """Return a queue with a new name below the folder of a job or study.

    A process may submit several within a second, such as a study over two sites: with the name of
    an earlier queue, it would wait for the end of that one.
    """
    now = datetime.now(timezone.utc)
    return LocalQueue(home=home, queue_id=f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(4)}")


def start_queue(
    queue: LocalQueue,
    runs: Sequence[RunFolder],
    content: bytes,
    module: str,
    submission: Submission,
) -> None:
    """Write the queue and the submissions, and start `python -m MODULE HOME QUEUE LOCK`.

    `content` is what the supervisor reads of its queue; each run gets `submission`, with the id of
    the queue and the time.

    Raises:
        SubmitError: the supervisor did not start.
        StoreError: a file cannot be written.
    """
    home = queue.home
    try:
        (home / FOLDER).mkdir(parents=True, exist_ok=True)
        lock = take(queue.file("lock"), wait=False)
        if lock is None:
            raise SubmitError(f"{queue.file('lock')}: another process holds it")
        queue.file("json").write_bytes(content)
    except OSError as failure:
        raise StoreError(f"{home / FOLDER}: cannot be written: {failure.strerror}") from None
    try:
        for run in runs:
            write(run, submission)
        _start(queue, lock, module)
    except OSError as failure:
        raise SubmitError(f"{home}: cannot start: {failure.strerror or failure}") from None


def submission_of(
    queue: LocalQueue, executor: str, cluster: SlurmEndpoint | None = None
) -> Submission:
    """Return the submission of the runs of a queue, made now."""
    return Submission(
        executor=executor,
        native_id=queue.queue_id,
        submitted=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        cluster=cluster or SlurmEndpoint(),
    )


def _start(queue: LocalQueue, lock: int, module: str) -> None:
    """Pass the lock to the supervisor, without releasing it in between."""
    argv = (sys.executable, "-m", module, str(queue.home.absolute()), queue.queue_id, str(lock))
    supervisor = start(argv, queue.file("log"), clean_environment(os.environ), [lock])
    os.close(lock)
    if not ended(supervisor, _START_S) or supervisor.returncode != 0:
        raise SubmitError(f"{queue.home}: the supervisor did not start", _last_line(queue))


def _last_line(queue: LocalQueue) -> str:
    lines = queue.file("log").read_text(errors="replace").splitlines()
    return lines[-1] if lines else f"see {queue.file('log')}"
