"""The request of the job to stop: the signal USR1 or TERM to a rank, or a file.

TERM asks in a job that is queued again: Slurm preempts it, and the rank saves before it ends. Slurm
sends TERM to all processes of the ranks, and KILL after the `GraceTime` of the QOS or, if it has
none, after `KillWait`. A launcher sends TERM too, when another rank has failed: then a rank ends at
once. A thread looks whether one has, because Python's handlers wait until the main thread returns
from a collective, which may never be.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path
from threading import Thread
from types import FrameType

from hpc_train.trainer.process_group import any_ranks

STOP_FILE = "HPCTRAIN_STOP_FILE"
REQUEST = "HPCTRAIN_STOP_AT_TERM"
FAILURE = "HPCTRAIN_FAILURE_FILE"
# As a shell reports the end by TERM (POSIX, 2.8.2).
_TERMINATED = 128 + signal.SIGTERM
_stop = False
_process = 0  # that which notes TERM


def should_stop() -> bool:
    """Whether any rank was asked to stop: every rank must call it, equally often.

    A rank is asked by the signal USR1, by a file whose path is $HPCTRAIN_STOP_FILE or, in a job
    that is queued again, by TERM. The ranks agree by one all-reduce of a number.
    """
    return stop_or_due(due=False)[0]


def stop_or_due(*, due: bool) -> tuple[bool, bool]:
    """Return `should_stop()`, and whether a checkpoint is due on any rank."""
    listen()
    file = os.environ.get(STOP_FILE)
    stop, on_any = any_ranks((_stop or bool(file and Path(file).exists()), due))
    return stop, on_any


def listen() -> None:
    """Note USR1 and TERM from now on, instead of ending; only in the main thread of a program.

    Unless the program or, for TERM, the job has another use of them.
    """
    global _process  # a handler has no other place
    free = (signal.SIG_DFL, signal.SIG_IGN)
    if signal.getsignal(signal.SIGUSR1) in free:
        signal.signal(signal.SIGUSR1, _note)
    if _process == os.getpid() or not os.environ.get(REQUEST):
        return
    if signal.getsignal(signal.SIGTERM) not in free:
        return
    _process = os.getpid()
    signal.signal(signal.SIGTERM, _note)
    read, write = os.pipe()
    os.set_blocking(write, False)
    if (other := signal.set_wakeup_fd(write, warn_on_full_buffer=False)) != -1:
        signal.set_wakeup_fd(other)  # the program's own, of asyncio for example
        return
    Thread(target=_watch, args=(read,), name="hpctrain-term", daemon=True).start()


def keep_worker(worker: int) -> None:
    """Let a worker process of a DataLoader go on when the job asks its rank: `worker_init_fn`.

    Slurm and torchrun signal every process of a rank, and torch raises an error in the rank whose
    worker ended. Only TERM of the rank itself ends a worker: so torch ends those that it has.
    """
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    if os.environ.get(REQUEST):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        Thread(target=_end_with_rank, name="hpctrain-term", daemon=True).start()


def _end_with_rank() -> None:
    rank = os.getppid()
    while signal.sigwaitinfo({signal.SIGTERM}).si_pid != rank:
        pass
    os._exit(0)


def _watch(read: int) -> None:
    """Look at each signal also where the main thread waits for other ranks, and runs no handler."""
    while number := os.read(read, 1):
        _end_after_failure(number[0])


def _end_after_failure(number: int) -> None:
    """End this process at a TERM that follows the failure of another rank."""
    # A file that is being written has no content yet.
    with suppress(OSError):
        failed = Path(os.environ.get(FAILURE) or os.devnull).stat().st_size > 0
        if number == signal.SIGTERM and failed:
            os._exit(_TERMINATED)


def _note(number: int, frame: FrameType | None) -> None:
    global _stop  # a handler has no other place
    # A child of the rank has its handler.
    if number == signal.SIGTERM and os.getpid() != _process:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    # Before the program could see the request and end with 0.
    _end_after_failure(number)
    _stop = True
