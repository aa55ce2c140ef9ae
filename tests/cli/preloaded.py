"""Processes of `hpctrain` that find the libraries imported: forks of one that has done it.

Each is a process of its own, as `python -m hpc_train` is: its arguments, environment, folder,
outputs and exit code, and it imports the package itself. pandas and scipy alone take a second.
What Python reads at its start (PYTHON..., the hash seed) is that of the process that forks.
"""

import atexit
import faulthandler
import gc
import importlib
import json
import os
import runpy
import select
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, NoReturn

from tests.cli.ask_preloaded import ask

# Nobody waits longer for a command.
SECONDS = 240
LIBRARIES = (
    "click", "jinja2.sandbox", "msgspec", "numpy", "pandas", "rich.console", "rich.table",
    "scipy.optimize", "scipy.special", "yaml", "zstandard", "matplotlib.figure",
    "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "submitit",
)  # fmt: skip


class Preloaded:
    """A process with the libraries, which runs a module for all that connect to its socket."""

    def __init__(
        self, module: str = "hpc_train", libraries: Sequence[str] = LIBRARIES, **more: str
    ) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.socket = Path(self._folder.name, "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(self.socket))
            listener.listen()
            words = ("-m", "tests.cli.preloaded", str(listener.fileno()), module, *libraries)
            self._process = subprocess.Popen(
                [sys.executable, *words],
                cwd=Path(__file__).parents[2],
                env={**os.environ, **more},
                pass_fds=[listener.fileno()],
                stdin=subprocess.PIPE,
            )

    def run(
        self, words: Sequence[str], environment: Mapping[str, str], folder: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run `MODULE WORDS` in a folder, or this one; return when its outputs are closed."""
        (out, for_out), (err, for_err) = os.pipe(), os.pipe()
        with Path(os.devnull).open("rb") as nothing:
            streams = (nothing.fileno(), for_out, for_err)
            connection = ask(self.socket, words, environment, folder or Path.cwd(), streams)
        os.close(for_out)
        os.close(for_err)
        with connection, ThreadPoolExecutor(2) as readers:
            stdout, stderr = readers.map(_text, (out, err))
            code = int(connection.recv(64))
        return subprocess.CompletedProcess(["hpctrain", *words], code, stdout, stderr)

    def end(self) -> None:
        """End the process; it notices that nobody asks any more."""
        self._process.communicate()
        assert self._process.wait(SECONDS) == 0
        self._folder.cleanup()


@cache
def preloaded() -> Preloaded:
    """Return the process that all tests of this one share; it ends with it."""
    process = Preloaded()
    atexit.register(process.end)
    return process


def _text(descriptor: int) -> str:
    with open(descriptor, encoding="utf-8") as stream:
        return stream.read()


def serve(listener: socket.socket, asked_for: IO[bytes], module: str) -> None:
    """Fork for each command, and send its exit code when it ends; return when `asked_for` ends."""
    running: dict[int, tuple[int, socket.socket]] = {}
    while True:
        watched = [asked_for.fileno(), listener.fileno(), *running]
        for one in select.select(watched, [], [])[0]:
            if one == asked_for.fileno():
                return
            if one == listener.fileno():
                connection, _ = listener.accept()
                child = _start(connection, module)
                running[os.pidfd_open(child)] = (child, connection)
            else:
                os.close(one)
                child, connection = running.pop(one)
                _, status = os.waitpid(child, 0)
                # Who asked may be gone, and must not end the others.
                with connection, suppress(OSError):
                    connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def _start(connection: socket.socket, module: str) -> int:
    """Fork; the child becomes the command."""
    request, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    child = os.fork()
    if child == 0:
        words, environment, folder = json.loads(request)
        become(module, words, environment, folder, streams)
    for descriptor in streams:
        os.close(descriptor)
    return child


def become(
    module: str,
    words: Sequence[str],
    environment: Mapping[str, str],
    folder: str,
    streams: Sequence[int],
) -> NoReturn:
    """Be `python -m MODULE WORDS` from here on."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    # What it waits for stands on its stderr.
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    sys.argv = ["hpctrain", *words]
    sys.path[0] = folder
    code = 1
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
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
    number, program, *names = sys.argv[1:]
    for name in names:
        importlib.import_module(name)
    gc.freeze()
    serve(socket.socket(fileno=int(number)), sys.stdin.buffer, program)
