"""No progress for a set time: the stacks of all threads on stderr, then the end of the rank.

The job sets $HPCTRAIN_HANG_AFTER [s]. Both timers run without the interpreter, which may be held by
a call that does not return: faulthandler writes from a thread of its own, and the kernel sends
SIGALRM. The ranks arm them within about a second of one another, so that all of them write before
the first one ends and its launcher ends the others. py-spy, if it is installed, does so too.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import time

from hpc_train.workload.external_stacks import ExternalStacks

SECONDS = "HPCTRAIN_HANG_AFTER"
# From the stacks to the end of the rank [s].
_GRACE_S = 5.0
# Each thread of faulthandler takes 0.1 ms to start: not at each step [s].
_EVERY_S = 0.5
_armed_at = float("-inf")
_external = ExternalStacks()


def progress() -> None:
    """Start the time again, because a step is done."""
    global _armed_at  # one pair of timers for each process
    now = time.monotonic()
    seconds = hang_after_s()
    if seconds is None or now - _armed_at < min(_EVERY_S, seconds / 4):
        return
    if signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL:
        return  # the program has its own use of the timer
    _armed_at = now
    faulthandler.dump_traceback_later(seconds, file=sys.__stderr__ or 2)
    signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE_S)
    _external.step(seconds)


def stop() -> None:
    """End the watch, before work that takes long or after the last step."""
    global _armed_at
    if _armed_at != float("-inf"):
        _armed_at = float("-inf")
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        _external.stop()


def hang_after_s() -> float | None:
    """Return the time that the job sets; None without one, or if it is no positive number."""
    try:
        seconds = float(os.environ.get(SECONDS, ""))
    except ValueError:
        return None
    return seconds if seconds > 0 else None
