"""Jobs of the small PBS: where they run, their processes, and what happens to them with time."""

from __future__ import annotations

import getpass
import os
import signal
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hpc_train.base.processes import start
from tests.servers.pbs_qsub import QUEUE, Chunk, JobRequest

if TYPE_CHECKING:
    from subprocess import Popen

SERVER = "pbs"
# Started in $HOME, as PBS does; the shebang of the script is honoured.
_AT_HOME = 'cd && exec "$0" "$@"'
# Time from TERM to KILL: PBS's kill_delay.
_KILL_DELAY_S = 10.0
_RAN, _DELETED, _WALLTIME = 93, 91, -29


class NodeSize(NamedTuple):
    """How many nodes there are, and what each has; memory in bytes."""

    nodes: int = 2
    ncpus: int = 4
    ngpus: int = 0
    mem: int = 8 << 30


@dataclass
class PbsJob:
    """A job; `placed` are its chunks with the numbers of their nodes, times seconds since 1970."""

    number: int
    request: JobRequest
    created: float
    state: str = "Q"
    substate: int = 10
    comment: str = ""
    placed: list[tuple[int, Chunk]] = field(default_factory=list)
    started: float | None = None
    ended: float | None = None
    exit_status: int | None = None
    # The exit status of a job that is being ended, and when its processes are killed.
    verdict: int | None = None
    kill_at: float | None = None

    @property
    def id(self) -> str:
        """Return the id, as qsub prints it: `41.pbs`."""
        return f"{self.number}.{SERVER}"

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self.state == "F"

    @property
    def output(self) -> str:
        """Return the file of its output."""
        folder = self.request.variables["PBS_O_WORKDIR"]
        return self.request.output or f"{folder}/{self.request.name}.o{self.number}"

    def end(self) -> None:
        """Let it end now."""
        self.state, self.ended = "F", time.time()


def node_name(number: int) -> str:
    """Return the name of a node, from 0."""
    return f"{SERVER}{number + 1}"


def nodes_of(job: PbsJob) -> tuple[str, ...]:
    """Return the nodes of a job, in the order of its node file, each once."""
    return tuple(dict.fromkeys(node_name(number) for number, _ in job.placed))


def place(job: PbsJob, running: Collection[PbsJob], size: NodeSize) -> list[int] | str:
    """Return the node of each chunk, first fit; or why the job waits."""
    word, _, sharing = job.request.place.partition(":")
    alone = "excl" in (word, sharing)
    free = {number: [size.ncpus, size.ngpus, size.mem] for number in range(size.nodes)}
    used: set[int] = set()
    for other in running:
        for node, chunk in other.placed:
            used.add(node)
            free[node] = [-1, 0, 0] if "excl" in other.request.place else _less(free[node], chunk)
    chosen: list[int] = []
    for chunk in job.request.chunks:
        fits = [
            number
            for number, rest in free.items()
            if min(_less(rest, chunk)) >= 0
            and not (word == "scatter" and number in chosen)
            and not (word == "pack" and chosen and number not in chosen)
            and not (alone and number in used)
        ]
        if not fits:
            if chunk.ncpus > size.ncpus:
                lack = f"ncpus (R: {chunk.ncpus} A: {size.ncpus} T: {size.ncpus})"
                return f"Can Never Run: Insufficient amount of resource: {lack}"
            return "Not Running: Not enough free nodes available"
        chosen.append(fits[0])
        free[fits[0]] = _less(free[fits[0]], chunk)
    return chosen


def _less(rest: Sequence[int], chunk: Chunk) -> list[int]:
    return [rest[0] - chunk.ncpus, rest[1] - chunk.ngpus, rest[2] - chunk.mem]


class JobProcesses:
    """The script of a running job, and the tasks that pbs_tmrsh started."""

    def __init__(self, folder: Path, job: PbsJob) -> None:
        self._job = job
        self.node_file = folder / "aux" / job.id
        self._spool = folder / "spool" / f"{job.id}.OU"
        script = folder / "jobs" / f"{job.id}.SC"
        script.write_text(job.request.script, encoding="utf-8")
        script.chmod(0o700)
        names = (node_name(node) for node, chunk in job.placed for _ in range(chunk.mpiprocs or 1))
        self.node_file.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
        self._log = Path(job.output) if job.request.live else self._spool
        self._environment = _environment(job, self.node_file, folder)
        self.main = start(["bash", "-c", _AT_HOME, str(script)], self._log, self._environment)
        self._tasks: list[Popen[bytes]] = []

    def start_task(self, node: int, argv: Sequence[str]) -> Popen[bytes]:
        """Start a command on a node; like PBS, with the job's first environment and its log."""
        own = {"PBS_NODENUM": str(node), "PBS_TASKNUM": str(len(self._tasks) + 2)}
        command = ["bash", "-c", _AT_HOME, *argv]
        self._tasks.append(start(command, self._log, {**self._environment, **own}))
        return self._tasks[-1]

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all processes of the job, in any session."""
        mark = f"PBS_NODEFILE={self.node_file}".encode()
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (path / "environ").read_bytes().split(b"\0"):
                    os.kill(int(path.name), number)

    def finish(self) -> None:
        """Kill what the job left behind, and deliver an output that was spooled."""
        while any(one.poll() is None for one in (self.main, *self._tasks)):
            self.signal(signal.SIGKILL)
        self.signal(signal.SIGKILL)
        self.node_file.unlink()
        if not self._job.request.live:
            with suppress(OSError):
                Path(self._job.output).write_bytes(self._spool.read_bytes())


def _environment(job: PbsJob, node_file: Path, folder: Path) -> dict[str, str]:
    """Return the variables of a job; of the shell it has only those of -v."""
    threads = job.placed[0][1].ompthreads or job.placed[0][1].ncpus
    return {
        "PATH": f"/usr/local/bin:/usr/bin:/bin:{folder}/bin",
        "HOME": os.environ.get("HOME", "/"),
        "USER": getpass.getuser(),
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        **job.request.variables,
        "PBS_ENVIRONMENT": "PBS_BATCH",
        "PBS_JOBID": job.id,
        "PBS_JOBNAME": job.request.name,
        "PBS_QUEUE": QUEUE,
        "PBS_NODEFILE": str(node_file),
        "PBS_NODENUM": "0",
        "PBS_TASKNUM": "1",
        "NCPUS": str(job.placed[0][1].ncpus),
        "OMP_NUM_THREADS": str(threads),
        "TMPDIR": os.environ.get("TMPDIR", "/tmp"),  # noqa: S108 - as PBS without a hook
    }


class JobTable:
    """All jobs since the start; those that have ended are the history."""

    def __init__(self, folder: Path, size: NodeSize) -> None:
        self._folder, self.size = folder, size
        self._last = 0
        self.jobs: dict[str, PbsJob] = {}
        self.processes: dict[str, JobProcesses] = {}

    def add(self, request: JobRequest, shell: Mapping[str, str], folder: str) -> PbsJob:
        """Queue a job."""
        names = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL")
        passed = {f"PBS_O_{name}": shell[name] for name in names if name in shell}
        own = {"PBS_O_WORKDIR": folder, "PBS_O_QUEUE": QUEUE, "PBS_O_HOST": SERVER}
        request = request._replace(variables={**passed, **own, **request.variables})
        self._last += 1
        job = PbsJob(self._last, request, time.time())
        if request.held:
            job.state, job.substate = "H", 20
        self.jobs[job.id] = job
        return job

    def delete(self, job: PbsJob) -> None:
        """Delete a job: one that runs gets TERM, and KILL after a while."""
        job.substate = _DELETED
        if job.id in self.processes:
            if job.kill_at is None:
                job.kill_at = time.time() + _KILL_DELAY_S
                self.processes[job.id].signal(signal.SIGTERM)
        else:
            job.end()

    def tick(self) -> None:
        """End what has ended or exceeds its time, then start what fits."""
        for job in [self.jobs[key] for key in self.processes]:
            self._look(job, self.processes[job.id], time.time())
        for job in self.jobs.values():
            if job.state == "Q":
                self._start(job)

    def end_all(self) -> None:
        """Kill the processes of all jobs."""
        for processes in self.processes.values():
            processes.finish()

    def _look(self, job: PbsJob, processes: JobProcesses, now: float) -> None:
        code, limit = processes.main.poll(), job.request.walltime_s
        if code is not None:
            self._finish(job, processes, code)
            return
        if limit is not None and job.kill_at is None and now > (job.started or now) + limit:
            job.verdict, job.kill_at = _WALLTIME, now + _KILL_DELAY_S
            processes.signal(signal.SIGTERM)
        if job.kill_at is not None and now > job.kill_at:
            processes.signal(signal.SIGKILL)

    def _finish(self, job: PbsJob, processes: JobProcesses, code: int) -> None:
        processes.finish()
        del self.processes[job.id]
        # A shell that a signal ended has 256 and the number of the signal.
        job.exit_status = job.verdict or (256 - code if code < 0 else code)
        job.end()
        if job.substate == _DELETED:
            job.comment += f" and terminated by {getpass.getuser()}@{SERVER}"
            return
        job.substate = _RAN
        failed = " and exceeded resource walltime" if job.verdict else " and failed"
        job.comment += failed if job.exit_status else " and finished"

    def _start(self, job: PbsJob) -> None:
        found = place(job, [self.jobs[key] for key in self.processes], self.size)
        if isinstance(found, str):
            job.comment = found
            return
        job.placed = list(zip(found, job.request.chunks, strict=True))
        job.state, job.substate, job.started = "R", 42, time.time()
        where = "+".join(f"({node_name(n)}:ncpus={chunk.ncpus})" for n, chunk in job.placed)
        job.comment = f"Job run at {time.strftime('%a %b %d at %H:%M')} on {where}"
        self.processes[job.id] = JobProcesses(self._folder, job)
