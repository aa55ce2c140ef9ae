"""The processes of a job: its script, its tasks on the nodes, and what they leave behind."""

from __future__ import annotations

import getpass
import os
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hpc_train.lab.pbs.job import PbsJob, node_name
from hpc_train.subprocesses import start

if TYPE_CHECKING:
    from subprocess import Popen

# Started in $HOME, as PBS does; the shebang of the script is honoured.
_AT_HOME = 'cd && exec "$0" "$@"'


class JobProcesses:
    """The script of a running job, and the tasks that pbs_tmrsh and pbsdsh started."""

    def __init__(self, folder: Path, job: PbsJob) -> None:
        """Write the files of a job, and start its script.

        Raises:
            OSError: its output cannot be written.
        """
        self._job = job
        self.node_file = folder / "aux" / job.id
        self._spool = folder / "spool" / f"{job.id}.OU"
        self._script = folder / "jobs" / f"{job.id}.SC"
        self._script.write_text(job.request.script, encoding="utf-8")
        self._script.chmod(0o700)
        names = (node_name(node) for node, chunk in job.placed for _ in range(chunk.mpiprocs or 1))
        self.node_file.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
        self.log = Path(job.output) if job.request.live else self._spool
        self.environment = _environment(job, self.node_file, folder)
        argv = ["bash", "-c", _AT_HOME, str(self._script)]
        self.main = start(argv, self.log, self.environment)
        self._tasks = 1

    def start_task(self, node: int, argv: Sequence[str]) -> Popen[bytes]:
        """Start a command on a node; like PBS, with the job's first environment and its log."""
        self._tasks += 1
        own = {"PBS_NODENUM": str(node), "PBS_TASKNUM": str(self._tasks)}
        command = ["bash", "-c", _AT_HOME, *argv]
        return start(command, self.log, {**self.environment, **own})

    def terminate(self) -> None:
        """Send TERM to the processes of the job."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the processes of the job."""
        self._signal(signal.SIGKILL)

    def finish(self) -> None:
        """Kill what the job left behind, and deliver an output that was spooled."""
        self.kill()
        self.node_file.unlink(missing_ok=True)
        self._script.unlink(missing_ok=True)
        if not self._job.request.live:
            with suppress(OSError):
                Path(self._job.output).write_bytes(self._spool.read_bytes())
            self._spool.unlink(missing_ok=True)

    def _signal(self, number: signal.Signals) -> None:
        for pid in _with_variable(f"PBS_NODEFILE={self.node_file}"):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def _environment(job: PbsJob, node_file: Path, folder: Path) -> dict[str, str]:
    """Return the variables of a job; those of the shell only if qsub was told to pass them on."""
    request, first = job.request, job.placed[0][1]
    user = getpass.getuser()
    own = {"PBS_ARRAY_INDEX": str(job.index), "PBS_ARRAY_ID": job.whole.id}
    return {
        "PATH": f"/usr/local/bin:/usr/bin:/bin:{folder}/bin",
        "HOME": os.environ.get("HOME", "/"),
        "LOGNAME": user,
        "USER": user,
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        **request.variables,
        **(own if job.array else {}),
        "PBS_ENVIRONMENT": "PBS_BATCH",
        "PBS_JOBID": job.id,
        "PBS_JOBNAME": request.name,
        "PBS_QUEUE": request.queue,
        "PBS_NODEFILE": str(node_file),
        "PBS_NODENUM": "0",
        "PBS_TASKNUM": "1",
        "NCPUS": str(first.ncpus),
        "OMP_NUM_THREADS": str(first.ompthreads or first.ncpus),
        "TMPDIR": os.environ.get("TMPDIR", "/tmp"),  # noqa: S108 - as PBS without a hook
    }


def submission_variables(shell: Mapping[str, str], folder: str, queue: str) -> dict[str, str]:
    """Return the variables that qsub adds to those of the job."""
    names = ("HOME", "LANG", "LOGNAME", "PATH", "MAIL", "SHELL")
    found = {f"PBS_O_{name}": shell[name] for name in names if name in shell}
    host = socket.gethostname()
    own = {"PBS_O_WORKDIR": folder, "PBS_O_SYSTEM": "Linux", "PBS_O_QUEUE": queue}
    return {**found, **own, "PBS_O_HOST": host}


def _with_variable(assignment: str) -> Iterator[int]:
    """Yield the processes with a variable in their environment, in any session."""
    mark = assignment.encode()
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with suppress(OSError):
                if mark in (path / "environ").read_bytes().split(b"\0"):
                    yield int(path.name)
