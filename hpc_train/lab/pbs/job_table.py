"""JobTable: the jobs of the small PBS, and what happens to them with time."""

from __future__ import annotations

import getpass
import time
from pathlib import Path

from msgspec.structs import replace

from hpc_train.lab.pbs.job import SERVER, PbsJob, node_name
from hpc_train.lab.pbs.job_array import follow_members, may_start
from hpc_train.lab.pbs.job_processes import JobProcesses, submission_variables
from hpc_train.lab.pbs.placement import NodeSize, place
from hpc_train.lab.pbs.qsub_request import JobRequest

# Time from TERM to KILL: PBS's kill_delay.
KILL_DELAY_S = 10.0
_RAN, _DELETED, _WALLTIME = 93, 91, -29


class JobTable:
    """All jobs since the start; those that have ended are the history."""

    def __init__(self, folder: Path, size: NodeSize) -> None:
        self.folder, self.size = folder, size
        self._last = 0
        self.jobs: dict[str, PbsJob] = {}
        self.processes: dict[str, JobProcesses] = {}

    def add(self, request: JobRequest, shell: dict[str, str], folder: str) -> PbsJob:
        """Queue a job, or an array and its subjobs."""
        variables = submission_variables(shell, folder, request.queue) | request.variables
        request = replace(request, variables=variables)
        self._last += 1
        job = PbsJob(self._last, request, time.time())
        if request.array is not None:
            indices = request.array.indices
            job.members = [
                PbsJob(job.number, request, job.created, index=index, array=job)
                for index in indices
            ]
        if request.held:
            job.state, job.substate = "H", 20
        self.jobs |= {one.id: one for one in (job, *job.members)}
        return job

    def delete(self, job: PbsJob) -> None:
        """Delete a job: one that runs gets TERM, and KILL after a while; of an array, all of it."""
        for member in job.members:
            if not member.has_ended:
                self.delete(member)
        if job.members:
            job.substate = _DELETED
            return
        processes = self.processes.get(job.id)
        job.substate = _DELETED
        if processes is None:
            job.state, job.ended = job.ended_state, time.time()
            return
        if job.kill_at is None:
            job.kill_at = time.time() + KILL_DELAY_S
            processes.terminate()

    def tick(self) -> None:
        """End what has ended or exceeds its time, then start what fits."""
        for job in [self.jobs[key] for key in self.processes]:
            self._look(job, self.processes[job.id])
        for job in self.jobs.values():
            if job.members:
                follow_members(job)
            elif job.state == "Q" and may_start(job):
                self._start(job)

    def end_all(self) -> None:
        """Kill the processes of all jobs."""
        for processes in self.processes.values():
            processes.finish()

    def _look(self, job: PbsJob, processes: JobProcesses) -> None:
        code, now = processes.main.poll(), time.time()
        if code is not None:
            self._finish(job, processes, code)
            return
        limit = job.request.walltime_s
        if limit is not None and job.kill_at is None and now > (job.started or now) + limit:
            job.verdict, job.kill_at = _WALLTIME, now + KILL_DELAY_S
            processes.terminate()
        if job.kill_at is not None and now > job.kill_at:
            processes.kill()

    def _finish(self, job: PbsJob, processes: JobProcesses, code: int) -> None:
        processes.finish()
        del self.processes[job.id]
        # A shell that a signal ended has 256 and the number of the signal.
        status = 256 - code if code < 0 else code
        job.exit_status = status if job.verdict is None else job.verdict
        job.state, job.ended = job.ended_state, time.time()
        deleted = job.substate == _DELETED
        job.substate = job.substate if deleted else _RAN
        end = f" and terminated by {getpass.getuser()}@{SERVER}" if deleted else ""
        if not deleted and job.exit_status:
            end = " and exceeded resource walltime" if job.verdict else " and failed"
        job.comment += end or " and finished"

    def _start(self, job: PbsJob) -> None:
        running = [self.jobs[key] for key in self.processes]
        found = place(job, running, self.size)
        if not found.nodes:
            job.comment = found.comment
            return
        job.placed = list(zip(found.nodes, job.request.chunks, strict=True))
        job.state, job.substate, job.started = "R", 42, time.time()
        where = "+".join(f"({node_name(n)}:ncpus={chunk.ncpus})" for n, chunk in job.placed)
        job.comment = f"Job run at {time.strftime('%a %b %d at %H:%M')} on {where}"
        try:
            self.processes[job.id] = JobProcesses(self.folder, job)
        except OSError:
            # PBS holds such a job after several attempts.
            job.state, job.substate, job.placed, job.started = "H", 20, [], None
            job.comment = "job held, too many failed attempts to run"
