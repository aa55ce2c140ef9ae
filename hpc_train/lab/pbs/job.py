"""PbsJob: a job of the small PBS, and its attributes in the order of a recorded qstat."""

from __future__ import annotations

import getpass
import time
from dataclasses import dataclass, field
from typing import Any

from hpc_train.lab.pbs.qsub_request import JobRequest
from hpc_train.lab.pbs.resource_list import Chunk

SERVER = "pbs"


@dataclass
class PbsJob:
    """A job: what was requested, where it is, and how it ended.

    `placed` are its chunks with the numbers of their nodes. Times are in seconds since the epoch.
    """

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
        """Return the id, as qsub prints it."""
        return f"{self.number}.{SERVER}"

    @property
    def output(self) -> str:
        """Return the file of its output."""
        default = f"{self.request.variables.get('PBS_O_WORKDIR', '/')}/{self.request.name}"
        return self.request.output or f"{default}.o{self.number}"

    @property
    def errors(self) -> str:
        """Return the file of its errors, unless they are in its output."""
        default = f"{self.request.variables.get('PBS_O_WORKDIR', '/')}/{self.request.name}"
        return self.request.errors or f"{default}.e{self.number}"


def node_name(number: int) -> str:
    """Return the name of a node, counted from 0."""
    return f"pbs{number + 1}"


def attributes(job: PbsJob) -> dict[str, Any]:
    """Return the attributes of a job, as `qstat -f` of OpenPBS 23.06 lists them."""
    request, user = job.request, getpass.getuser()
    used = {"resources_used": _used(job)} if job.started else {}
    hosts = [f"{node_name(node)}/0*{chunk.ncpus}" for node, chunk in job.placed]
    vnodes = [f"({node_name(node)}:ncpus={chunk.ncpus})" for node, chunk in job.placed]
    placed = {"exec_host": "+".join(hosts), "exec_vnode": "+".join(vnodes)} if job.placed else {}
    found: dict[str, Any] = {
        "Job_Name": request.name,
        "Job_Owner": f"{user}@{SERVER}",
        **used,
        "job_state": job.state,
        "queue": request.queue,
        "server": SERVER,
        **({"Account_Name": request.account} if request.account else {}),
        "Checkpoint": "u",
        "ctime": clock(job.created),
        "Error_Path": f"{SERVER}:{job.errors}",
        **placed,
        "Hold_Types": "u" if request.held else "n",
        "Join_Path": "oe" if request.joined else "n",
        "Keep_Files": "doe" if request.live else "n",
        "Mail_Points": "a",
        "mtime": clock(job.ended or job.started or job.created),
        "Output_Path": f"{SERVER}:{job.output}",
        "Priority": 0,
        "qtime": clock(job.created),
        "Rerunable": str(request.rerunnable),
        "Resource_List": _resources(job),
        **({"stime": clock(job.started)} if job.started else {}),
        **({"obittime": clock(job.ended)} if job.ended and job.started else {}),
        "substate": job.substate,
        "Variable_List": {name: _number(text) for name, text in request.variables.items()},
        **({"comment": job.comment} if job.comment else {}),
        "etime": clock(job.created),
        **({"run_count": 1} if job.started else {}),
        **_end(job),
    }
    return found


def _end(job: PbsJob) -> dict[str, Any]:
    """Return the attributes from the exit status on."""
    ended = {} if job.exit_status is None else {"Stageout_status": 1}
    code = {} if job.exit_status is None else {"Exit_status": job.exit_status}
    return {
        **ended,
        **code,
        "Submit_arguments": job.request.arguments,
        **({"history_timestamp": int(job.ended)} if job.ended else {}),
        "project": job.request.project,
        "Submit_Host": SERVER,
    }


def clock(when: float) -> str:
    """Return a time as PBS writes it: `Sun Nov 22 18:49:00 2026`."""
    return time.asctime(time.localtime(when))


def duration(seconds: float) -> str:
    """Return a duration as PBS writes it: HH:MM:SS."""
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole % 3600 // 60:02d}:{whole % 60:02d}"


def _used(job: PbsJob) -> dict[str, Any]:
    wall = (job.ended or time.time()) - (job.started or 0)
    cores = sum(chunk.ncpus for _, chunk in job.placed)
    return {"cpupercent": 0, "cput": "00:00:00", "mem": "0kb", "ncpus": cores, "vmem": "0kb"} | {
        "walltime": duration(wall)
    }


def _resources(job: PbsJob) -> dict[str, Any]:
    chunks = job.request.chunks
    found: dict[str, Any] = {
        "ncpus": sum(chunk.ncpus for chunk in chunks),
        "nodect": len(chunks),
        "place": job.request.place,
        "select": job.request.resources.get("select", f"1:ncpus={chunks[0].ncpus}"),
    }
    limit = job.request.walltime_s
    return found if limit is None else found | {"walltime": duration(limit)}


def _number(text: str) -> int | str:
    """Return a variable as the JSON of qstat has it: what looks like a number is one."""
    return int(text) if text.isascii() and text.isdecimal() else text
