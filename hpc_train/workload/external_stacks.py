"""py-spy, where it is installed, prints the stacks of a rank that hangs, with those of C functions.

A shell beside the rank waits for its steps, because the interpreter of the rank may be held, and
starts py-spy when none came for a while. It ends with the rank.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from contextlib import suppress

# Above 128, `read` was given nothing for the time of -t; otherwise the rank has ended.
_WAIT = """\
until read -r -N 1 -t "$0" _; code=$?; [ "$code" -ne 0 ]; do :; done
[ "$code" -gt 128 ] || exit 0
py-spy dump --native --pid "$1" >&2 || py-spy dump --pid "$1" >&2
"""
# prctl(2): the shell and what it starts may look into this process, also where Yama forbids it.
_PR_SET_PTRACER = 0x59616D61


class ExternalStacks:
    """The shell of this process, from the first step to the end of the watch."""

    def __init__(self) -> None:
        self._pipe: int | None = None

    def step(self, seconds: float) -> None:
        """Wait for the next step, for so long; without bash or py-spy nothing is done."""
        if self._pipe is None:
            self._pipe = _start(seconds)
        # The pipe is full, or the shell was killed.
        with suppress(OSError):
            os.write(self._pipe, b".")

    def stop(self) -> None:
        """Let the shell end."""
        if self._pipe is not None and self._pipe >= 0:
            os.close(self._pipe)
        self._pipe = None


def _start(seconds: float) -> int:
    """Return the end of a pipe into which a step is written; -1 without the programs."""
    bash = shutil.which("bash")
    if bash is None or shutil.which("py-spy") is None:
        return -1
    reader, writer = os.pipe()
    argv = [bash, "-c", _WAIT, f"{seconds:.3f}", str(os.getpid())]
    pid = os.posix_spawn(bash, argv, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, reader, 0)])
    os.close(reader)
    os.set_blocking(writer, False)
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, pid, 0, 0, 0)
    return writer
