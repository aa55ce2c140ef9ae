"""A small PBS in a thread of the test, with its commands on PATH; it needs no root.

It runs scripts on nodes that are names on this machine. Each command is a process that sends its
arguments over a socket (`pbs_client`).
"""

from __future__ import annotations

import json
import os
import selectors
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.servers import pbs_client
from tests.servers.pbs_answers import Answer, answer
from tests.servers.pbs_jobs import JobTable, NodeSize, nodes_of

if TYPE_CHECKING:
    from subprocess import Popen

COMMANDS = ("qsub", "qstat", "qdel", "qselect", "pbsnodes", "pbs_tmrsh")
Done = subprocess.CompletedProcess[str]
_TICK_S = 0.05
_PROFILE = """\
schema: 1
name: lab-pbs
description: A small PBS on this one machine
scheduler: pbs
pbs: {{project: -A, shape: select, place: scatter}}
sources:
  - {{what: the settings of the small PBS, date: 2026-01-01, confidence: high}}
launchers:
  default: torchrun
  allowed: [torchrun, accelerate, spawn, single]
  forbidden: {{mpirun: all nodes are this machine}}
partitions:
  - name: workq
    default: true
    max_time: 1h
    max_nodes: {size.nodes}
    cpus_per_node: {size.ncpus}
    gpus_per_node: 0
    mem_per_node: {memory}M
rendezvous: {{host: loopback}}
poll: 2s
setup:
  - {path}
env: {{GLOO_SOCKET_IFNAME: lo}}
env_why: {{GLOO_SOCKET_IFNAME: all nodes are this machine}}
"""


class Server:
    """A server; its thread answers a command, then looks at the jobs."""

    def __init__(self, folder: Path, size: NodeSize) -> None:
        self._faults, self._table = folder / "faults", JobTable(folder, size)
        self._waiting: list[tuple[socket.socket, Popen[bytes]]] = []
        self._silenced: list[socket.socket] = []
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(f"{folder}/socket")
        self._listening.listen(64)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def end(self) -> None:
        """Kill the jobs; commands are not answered any more."""
        self._ended.set()
        self._thread.join()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as ready, self._listening:
            ready.register(self._listening, selectors.EVENT_READ)
            while not self._ended.is_set():
                if ready.select(_TICK_S):
                    self._accept()
                self._table.tick()
                self._reply_to_starters()
        self._table.end_all()
        for connection in (*self._silenced, *(one for one, _ in self._waiting)):
            connection.close()

    def _accept(self) -> None:
        connection, _ = self._listening.accept()
        with connection.makefile("rb") as lines:
            call = json.loads(lines.readline())
        faults = {path.name for path in self._faults.iterdir()}
        once = faults & {"refused-once", "lost-answer"} if call["command"] == "qsub" else set()
        for name in once:
            (self._faults / name).unlink()
        if "silent" in faults:
            # Kept open: the command waits.
            self._silenced.append(connection)
        elif call["command"] == "pbs_tmrsh":
            self._start_task(connection, call)
        elif "refused-once" in once:
            text = "Connection refused\nqsub: cannot connect to server pbs (errno=111)\n"
            _reply(connection, Answer(111, errors=text))
        else:
            found = answer(self._table, faults, call)
            if "lost-answer" in once:
                connection.close()
            else:
                _reply(connection, found)

    def _start_task(self, connection: socket.socket, call: dict[str, Any]) -> None:
        """Start what pbs_tmrsh is to start on the named node; it ends with that."""
        node, *argv = call["arguments"]
        job = self._table.jobs[call["variables"]["PBS_JOBID"]]
        if node not in nodes_of(job):
            text = f'pbs_tmrsh: host "{node}" is not a node in job <{job.id}>\n'
            _reply(connection, Answer(255, errors=text))
            return
        processes = self._table.processes[job.id]
        self._waiting.append((connection, processes.start_task(nodes_of(job).index(node), argv)))

    def _reply_to_starters(self) -> None:
        for connection, task in list(self._waiting):
            code = task.poll()
            if code is not None:
                _reply(connection, Answer(256 - code if code < 0 else code))
                self._waiting.remove((connection, task))


def _reply(connection: socket.socket, found: Answer) -> None:
    with suppress(OSError), connection:
        connection.sendall(json.dumps(found).encode())


@dataclass(frozen=True, slots=True)
class RunningPbs:
    """A running small PBS, and the folder of its user."""

    folder: Path
    work: Path
    profile: Path
    server: Server

    def command(self, *words: str) -> Done:
        """Run a command of PBS in the folder of the user."""
        return subprocess.run(
            words, cwd=self.work, capture_output=True, text=True, timeout=240, check=False
        )

    def fault(self, name: str) -> Path:
        """Set a fault; the file that removes it."""
        path = self.folder / "faults" / name
        path.touch()
        return path

    def submit(self, text: str, *options: str) -> str:
        """Submit a script, which has to work; the id of its job."""
        (self.work / "job.sh").write_text(f"#!/bin/bash\n{text}\n")
        done = self.command("qsub", *options, "job.sh")
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.strip()


@contextmanager
def running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: NodeSize | None = None
) -> Iterator[RunningPbs]:
    """Start a small PBS, with its profile among those of the user; a socket needs a short path."""
    size = size or NodeSize()
    folder = Path(tempfile.mkdtemp(prefix="hpct-pbs-"))
    for name in ("bin", "jobs", "spool", "aux", "faults"):
        (folder / name).mkdir()
    for command in COMMANDS:
        words = (sys.executable, "-I", "-S", str(Path(pbs_client.__file__)), str(folder), command)
        program = folder / "bin" / command
        program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    profile = tmp_path / "config" / "hpctrain" / "lab-pbs.yaml"
    profile.parent.mkdir(parents=True, exist_ok=True)
    path = json.dumps(f"PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH")
    profile.write_text(_PROFILE.format(size=size, memory=size.mem >> 20, path=path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")
    server = Server(folder, size)
    try:
        yield RunningPbs(folder, work, profile, server)
    finally:
        server.end()
        shutil.rmtree(folder)


@pytest.fixture
def pbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningPbs]:
    """Return a small PBS of two nodes with four cores each."""
    with running(tmp_path, monkeypatch) as found:
        yield found
