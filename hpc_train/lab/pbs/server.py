"""The server of the small PBS: answers commands on a socket, and runs the jobs.

`python -m hpc_train.lab.pbs.server FOLDER`; TERM ends it and the jobs.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hpc_train.atomicfile import write_atomic
from hpc_train.lab.pbs.command_answer import CommandAnswer
from hpc_train.lab.pbs.commands import answer, nodes_of
from hpc_train.lab.pbs.faults import Faults
from hpc_train.lab.pbs.job_table import JobTable
from hpc_train.lab.pbs.placement import NodeSize

if TYPE_CHECKING:
    from subprocess import Popen

_TICK_S = 0.05
_REQUEST_S = 5.0
# Commands of PBS inside a job, which end with what they started.
_STARTERS = ("pbs_tmrsh", "pbsdsh")


class Server:
    """One server; its loop answers a command, then looks at the jobs."""

    def __init__(self, folder: Path, size: NodeSize) -> None:
        self._table, self._faults = JobTable(folder, size), Faults(folder)
        self._waiting: list[tuple[socket.socket, str, list[Popen[bytes]]]] = []
        self._silenced: list[socket.socket] = []
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(f"{folder}/socket")
        self._listening.listen(64)
        self._ended = False

    def serve(self) -> None:
        """Serve until TERM, then kill the jobs."""
        signal.signal(signal.SIGTERM, self._end)
        with selectors.DefaultSelector() as ready:
            ready.register(self._listening, selectors.EVENT_READ)
            while not self._ended:
                if ready.select(_TICK_S):
                    self._accept()
                self._table.tick()
                self._reply_to_starters()
        self._table.end_all()

    def _end(self, *_: object) -> None:
        self._ended = True

    def _accept(self) -> None:
        connection, _ = self._listening.accept()
        connection.settimeout(_REQUEST_S)
        try:
            call = json.loads(_line(connection))
        except (OSError, ValueError):
            connection.close()
            return
        if self._faults.has("silent"):
            # Kept open: the command waits.
            self._silenced.append(connection)
        elif call["command"] in _STARTERS:
            self._start_tasks(connection, call)
        else:
            self._answer(connection, call)

    def _answer(self, connection: socket.socket, call: dict[str, Any]) -> None:
        command = call["command"]
        if command == "qsub" and self._faults.take("refused-once"):
            text = "Connection refused\nqsub: cannot connect to server pbs (errno=111)\n"
            _reply(connection, CommandAnswer(code=111, errors=text))
            return
        found = answer(self._table, self._faults, command, call["arguments"], call)
        if command == "qsub" and self._faults.take("lost-answer"):
            connection.close()
            return
        _reply(connection, found)

    def _start_tasks(self, connection: socket.socket, call: dict[str, Any]) -> None:
        command, words = call["command"], call["arguments"]
        job = self._table.jobs.get(call["variables"].get("PBS_JOBID", ""))
        processes = self._table.processes.get(job.id) if job else None
        if job is None or processes is None:
            _reply(connection, CommandAnswer(code=255, errors=f"{command}: not in a job\n"))
            return
        nodes = nodes_of(job)
        if command == "pbs_tmrsh" and (not words or words[0] not in nodes):
            text = (
                f'{command}: host "{words[0] if words else ""}" is not a node in job <{job.id}>\n'
            )
            _reply(connection, CommandAnswer(code=255, errors=text))
            return
        lines = processes.node_file.read_text(encoding="utf-8").split()
        # pbsdsh starts a task for each line, pbs_tmrsh one on the named node.
        wanted = lines if command == "pbsdsh" else words[:1]
        argv = _program(words if command == "pbsdsh" else words[1:])
        started = [processes.start_task(nodes.index(node), argv) for node in wanted]
        self._waiting.append((connection, command, started))

    def _reply_to_starters(self) -> None:
        for one in list(self._waiting):
            connection, command, tasks = one
            codes = [task.poll() for task in tasks]
            if all(code is not None for code in codes):
                # pbsdsh ends with 0 although a task failed.
                code = codes[0] if command == "pbs_tmrsh" and codes else 0
                code = 256 - code if code is not None and code < 0 else code
                _reply(connection, CommandAnswer(code=(code or 0) % 256))
                self._waiting.remove(one)


def _program(words: Sequence[str]) -> Sequence[str]:
    return words[1:] if words and words[0] == "--" else words


def _line(connection: socket.socket) -> bytes:
    found = b""
    while not found.endswith(b"\n"):
        part = connection.recv(1 << 16)
        if not part:
            break
        found += part
    return found


def _reply(connection: socket.socket, found: CommandAnswer) -> None:
    with suppress(OSError), connection:
        connection.sendall(json.dumps([found.code, found.output, found.errors]).encode())


def main() -> None:
    """Serve the folder in the first argument, with the nodes in its file `nodes.json`.

    The process that was started ends when commands are answered; `server.pid` has that of the
    server.
    """
    folder = Path(sys.argv[1])
    size = msgspec.json.decode((folder / "nodes.json").read_bytes(), type=NodeSize)
    server = Server(folder, size)
    pid = os.fork()
    if pid:
        write_atomic(folder / "server.pid", str(pid).encode())
        os._exit(0)
    server.serve()


if __name__ == "__main__":
    main()
