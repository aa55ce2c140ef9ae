"""A queue of runs on this machine or on hosts: its files, its lock, and the process that runs it.

`python -m hpc_train.runs.run_queue RUNNER HOME QUEUE LOCK` is no service: it ends after the
last run of its queue, whose lock it holds meanwhile. The kernel releases a lock when its last
holder ends, so a killed queue is detected at once, without relying on process ids.
"""

import fcntl
import os
import secrets
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import cast

import msgspec

from hpc_train.base.errors import HpcTrainError, SubmitError
from hpc_train.base.files import lock, open_lock, open_regular, read_regular
from hpc_train.base.processes import clean_environment, ended, start
from hpc_train.base.registry import resolve
from hpc_train.base.values import Value, decode_unit
from hpc_train.plans.plan import LaunchPlan
from hpc_train.runs.executor import ExecutorOptions
from hpc_train.runs.json_files import cannot_write, write_submission
from hpc_train.runs.run import RunFolder, Submission

FOLDER = ".queue"
_START_S = 60.0


class Queue(Value, frozen=True, kw_only=True):
    """The files of one queue below the folder of its job or study."""

    home: Path
    queue_id: str

    def file(self, ending: str) -> Path:
        """Return the queue's `lock`, `json` or `log` file."""
        return self.home / FOLDER / f"{self.queue_id.replace('/', '_')}.{ending}"

    def reason(self, run_id: str) -> str:
        """Return what the supervisor last said of a run in its log; empty if it said nothing."""
        said = ""
        with suppress(OSError):
            for line in read_regular(self.file("log")).decode(errors="replace").splitlines():
                if line.startswith(f"{run_id}: "):
                    said = line.removeprefix(f"{run_id}: ")
        return said


class QueuedRuns(Value, frozen=True, kw_only=True):
    """QUEUE.json: the runs in order, the hosts that are used last, and those only used alone."""

    runs: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()


class _Planned(msgspec.Struct):
    """The only part of a manifest that a supervisor reads."""

    plan: LaunchPlan


def take(path: Path) -> int | None:
    """Take a lock and return its file descriptor; None if another process holds it.

    Raises:
        OSError: the file cannot be opened.
    """
    descriptor = open_lock(path, 0o644)
    if lock(descriptor):
        return descriptor
    os.close(descriptor)
    return None


def is_held(path: Path) -> bool | None:
    """Whether the lock is held; None if this user may not read it, or it is no regular file.

    The file is opened read-only, so that other users can query the state of runs.
    """
    try:
        with open_regular(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


def new_queue(home: Path) -> Queue:
    """Return a queue with a new name below the folder of a job or study.

    A process may submit several within a second, such as a study over two sites: with the name of
    an earlier queue, it would wait for the end of that one.
    """
    now = datetime.now(timezone.utc)
    return Queue(home=home, queue_id=f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(4)}")


def start_queue(
    queue: Queue, runs: Sequence[RunFolder], executor: str, runner: str, options: ExecutorOptions
) -> None:
    """Write the queue and the submissions, and start the process that runs them.

    `runner` is the `module:attr` of a function that runs one of them.

    Raises:
        SubmitError: the supervisor did not start.
        StoreError: a file cannot be written.
    """
    home, content = (
        queue.home,
        QueuedRuns(
            runs=tuple(run.run_id for run in runs), exclude=options.exclude, apart=options.apart
        ),
    )
    submission = Submission(
        executor=executor,
        native_id=queue.queue_id,
        submitted=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        cluster=options.cluster,
    )
    try:
        (home / FOLDER).mkdir(parents=True, exist_ok=True)
        held = take(queue.file("lock"))
        if held is None:
            raise SubmitError(f"{queue.file('lock')}: another process holds it")
        queue.file("json").write_bytes(msgspec.json.encode(content))
        # This line gets the log a block of the disk, so that reasons fit when the disk is full.
        queue.file("log").write_bytes(b"runs: %d\n" % len(runs))
    except OSError as failure:
        raise cannot_write(home / FOLDER, failure) from None
    try:
        for run in runs:
            write_submission(run, submission)
        # The lock is passed on, without releasing it in between.
        words = (sys.executable, "-m", __name__, runner)
        argv = (*words, str(home.absolute()), queue.queue_id, str(held))
        supervisor = start(argv, queue.file("log"), clean_environment(os.environ), [held])
        os.close(held)
        if not ended(supervisor, _START_S) or supervisor.returncode != 0:
            lines = read_regular(queue.file("log")).decode(errors="replace").splitlines()[1:]
            why = lines[-1] if lines else f"see {queue.file('log')}"
            raise SubmitError(f"{home}: the supervisor did not start", why)
    except OSError as failure:
        raise SubmitError(f"{home}: cannot start: {failure.strerror or failure}") from None


def open_submission(run: RunFolder) -> Submission | None:
    """Return the submission of a run; None if it was cancelled, or its folder removed.

    Raises:
        OSError, msgspec.DecodeError: it cannot be read.
    """
    if not run.submission.exists():
        return None
    content = read_regular(run.submission)
    found = msgspec.json.decode(content, type=Submission, dec_hook=decode_unit)
    return found if found.state is None else None


def wanted(run: RunFolder) -> Submission | None:
    """Return the submission of a run that was not cancelled, removed or already started."""
    return None if run.status.exists() else open_submission(run)


def plan_of(run: RunFolder) -> LaunchPlan:
    """Return the plan of a run.

    Raises:
        OSError, msgspec.DecodeError: its manifest cannot be read.
    """
    content = read_regular(run.manifest)
    return msgspec.json.decode(content, type=_Planned, dec_hook=decode_unit).plan


def say(run: RunFolder, text: str) -> None:
    """Write a sentence that `status` prints for a run that has not started."""
    with suppress(OSError):
        sys.stderr.write(f"{run.run_id}: {text}\n")
        sys.stderr.flush()


def main(runner: str, home: str, queue_id: str, held: str) -> None:
    """Run the queue's runs that were not cancelled, one at a time."""
    run_one = cast("Callable[[RunFolder, QueuedRuns, int], None]", resolve(runner))
    queue = Queue(home=Path(home), queue_id=queue_id)
    queued = msgspec.json.decode(read_regular(queue.file("json")), type=QueuedRuns)
    # The submitting process continues, after everything has been checked.
    if os.fork():
        os._exit(0)
    for run_id in queued.runs:
        run = RunFolder(path=queue.home / run_id)
        try:
            run_one(run, queued, int(held))
        except (HpcTrainError, OSError, msgspec.DecodeError) as failure:
            # A damaged folder must not prevent the others from running.
            if isinstance(failure, OSError):
                failure = cannot_write(Path(failure.filename or run.path), failure)
            say(run, f"{failure}; correct it before hpctrain retry {queue.home.name}")


if __name__ == "__main__":
    main(*sys.argv[1:5])
