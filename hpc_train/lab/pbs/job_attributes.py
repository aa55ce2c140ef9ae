"""The attributes of jobs of the small PBS, in the order of a recorded qstat."""

from __future__ import annotations

import getpass
import time
from typing import Any

from hpc_train.lab.pbs.job import SERVER, PbsJob, node_name

_COUNTED = {"Queued": "QH", "Running": "R", "Exiting": "E", "Expired": "X"}


def attributes(job: PbsJob) -> dict[str, Any]:
    """Return the attributes of a job, as `qstat -f` of OpenPBS 23.06 lists them."""
    request, user = job.request, getpass.getuser()
    used = {"resources_used": _used(job)} if job.started and not job.members else {}
    hosts = [f"{node_name(node)}/0*{chunk.ncpus}" for node, chunk in job.placed]
    vnodes = [f"({node_name(node)}:ncpus={chunk.ncpus})" for node, chunk in job.placed]
    placed = {"exec_host": "+".join(hosts), "exec_vnode": "+".join(vnodes)} if job.placed else {}
    return {
        "Job_Name": request.name,
        "Job_Owner": f"{user}@{SERVER}",
        **used,
        "job_state": job.state,
        "queue": request.queue,
        "server": SERVER,
        **({"Account_Name": request.account} if request.account else {}),
        **_of_whole_jobs(job, {"Checkpoint": "u"}),
        "ctime": clock(job.created),
        "Error_Path": f"{SERVER}:{job.errors}",
        **placed,
        **_of_whole_jobs(job, {"Hold_Types": "u" if _is_held(job.whole) else "n"}),
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
        **({"run_count": 1} if job.started and not job.members else {}),
        **_end(job),
    }


def _end(job: PbsJob) -> dict[str, Any]:
    """Return the attributes from the exit status on."""
    ended = {} if job.exit_status is None else {"Stageout_status": 1}
    code = {} if job.exit_status is None else {"Exit_status": job.exit_status}
    return {
        **ended,
        **code,
        **_of_whole_jobs(job, {"Submit_arguments": job.request.arguments}),
        **_array(job),
        **({"history_timestamp": int(job.ended)} if job.ended else {}),
        "project": job.request.project,
        "Submit_Host": SERVER,
    }


def _is_held(job: PbsJob) -> bool:
    """Whether a job is held, or was when it was deleted."""
    return job.state == "H" or (job.has_ended and not job.started and job.request.held)


def _of_whole_jobs(job: PbsJob, found: dict[str, Any]) -> dict[str, Any]:
    """Return attributes that a subjob has only until it starts, from its array."""
    return found if job.array is None or job.state == "Q" else {}


def _array(job: PbsJob) -> dict[str, Any]:
    """Return the attributes of an array, or what a subjob says of its place in one."""
    if job.index is not None:
        return {"array_id": job.whole.id, "array_index": job.index}
    if job.request.array is None:
        return {}
    states = [one.state for one in job.members]
    count = {name: sum(state in letters for state in states) for name, letters in _COUNTED.items()}
    remaining = [str(one.index) for one in job.members if one.state == "Q"]
    limit = job.request.array.most_running
    return {
        "array": "True",
        "array_state_count": " ".join(f"{name}:{number}" for name, number in count.items()),
        "array_indices_submitted": job.request.array.text,
        "array_indices_remaining": ",".join(remaining) or "-",
        **({"max_run_subjobs": limit} if limit else {}),
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
