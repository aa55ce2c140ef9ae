"""Processes of `hpctrain` that find the libraries imported: forks of one that has done it.

Each is a process of its own, as `python -m hpc_train` is: its arguments, environment, folder,
outputs and exit code, and it imports the package itself. pandas and scipy alone take a second.
What Python reads at its start (PYTHON..., the hash seed) is that of the process that forks.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from threading import Lock
from typing import NoReturn

# Nobody waits longer for a command.
SECONDS = 240
LIBRARIES = (
    "click", "jinja2.sandbox", "msgspec", "numpy", "pandas", "rich.console", "rich.table",
    "scipy.optimize", "scipy.special", "yaml", "zstandard", "matplotlib.figure",
    "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "submitit",
)  # fmt: skip


class Preloaded:
    """A process with the libraries, which runs one command at a time."""

    def __init__(self) -> None:
        self._turn = Lock()
        self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.cli.preloaded", str(theirs.fileno())],
                cwd=Path(__file__).parents[2],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )

    def run(
        self, words: Sequence[str], environment: Mapping[str, str], folder: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run `hpctrain WORDS` in a folder, or this one; return when its outputs are closed."""
        request = json.dumps([words, dict(environment), str(folder or Path.cwd())]).encode()
        with self._turn:
            (out, for_out), (err, for_err) = os.pipe(), os.pipe()
            socket.send_fds(self._connection, [request], [for_out, for_err])
            os.close(for_out)
            os.close(for_err)
            with ThreadPoolExecutor(2) as readers:
                stdout, stderr = readers.map(_text, (out, err))
            code = int(self._connection.recv(64))
        return subprocess.CompletedProcess(["hpctrain", *words], code, stdout, stderr)

    def end(self) -> None:
        """End the process; it notices that nobody asks any more."""
        self._connection.close()
        assert self._process.wait(SECONDS) == 0


@cache
def preloaded() -> Preloaded:
    """Return the process that all tests of this one share; it ends with it."""
    process = Preloaded()
    atexit.register(process.end)
    return process


def _text(descriptor: int) -> str:
    with open(descriptor, encoding="utf-8") as stream:
        return stream.read()


def serve(connection: socket.socket) -> None:
    """Fork for each command that is asked for; return when there are no more."""
    while True:
        request, outputs, _, _ = socket.recv_fds(connection, 1 << 20, 2)
        if not request:
            return
        if (child := os.fork()) == 0:
            connection.close()
            words, environment, folder = json.loads(request)
            become(words, environment, folder, outputs)
        for descriptor in outputs:
            os.close(descriptor)
        _, status = os.waitpid(child, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def become(
    words: Sequence[str], environment: Mapping[str, str], folder: str, outputs: Sequence[int]
) -> NoReturn:
    """Be `python -m hpc_train WORDS` from here on."""
    signal.alarm(SECONDS)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for descriptor, number in zip(outputs, (1, 2), strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.argv = ["hpctrain", *words]
    sys.path[0] = folder
    code = 1
    try:
        runpy.run_module("hpc_train", run_name="__main__", alter_sys=True)
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 0
    except Exception:  # noqa: BLE001 - printed, as Python does
        traceback.print_exc()
    # As multiprocessing ends its forks: to take the libraries down module by module takes longer
    # than most commands.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    for name in LIBRARIES:
        importlib.import_module(name)
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
