"""The request of the job to stop: the signal USR1 or TERM to a rank, or a file."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from threading import Thread
from types import FrameType

from hpc_train.workload import term_signal
from hpc_train.workload.process_group import any_ranks

STOP_FILE = "HPCTRAIN_STOP_FILE"
_stop = False


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
    asked = _stop or term_signal.arrived() or bool(file and Path(file).exists())
    stop, on_any = any_ranks((asked, due))
    return stop, on_any


def listen() -> None:
    """Note USR1 and TERM from now on, instead of ending; only in the main thread of a program."""
    if signal.getsignal(signal.SIGUSR1) in (signal.SIG_DFL, signal.SIG_IGN):
        signal.signal(signal.SIGUSR1, _note)
    term_signal.listen()


def keep_worker(worker: int) -> None:
    """Let a worker process of a DataLoader go on when the job asks its rank: `worker_init_fn`.

    Slurm and torchrun signal every process of a rank, and torch raises an error in the rank whose
    worker ended. Only TERM of the rank itself ends a worker: so torch ends those that it has.
    """
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    if term_signal.is_request():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        Thread(target=_end_with_rank, name="hpctrain-term", daemon=True).start()


def _end_with_rank() -> None:
    rank = os.getppid()
    while signal.sigwaitinfo({signal.SIGTERM}).si_pid != rank:
        pass
    os._exit(0)


def _note(number: int, frame: FrameType | None) -> None:
    global _stop  # a handler has no other place
    _stop = True
