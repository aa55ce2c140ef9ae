"""The commands of the small PBS -> their answers, in the shapes of a recorded OpenPBS 23.06.

Its faults are files, which a test makes in the folder `faults`:

| name | effect |
|---|---|
| lost-answer | the next qsub is accepted, and its answer is lost |
| refused-once | the next qsub does not reach the server |
| silent | no command is answered, until the fault is removed |
| no-history | qstat -x is refused |
| history-gone | jobs that have ended are unknown |
"""

import getopt
import getpass
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from tests.servers.pbs_jobs import SERVER, JobTable, PbsJob, node_name
from tests.servers.pbs_qsub import QUEUE, RefusedError, read_request

VERSION = "23.06.06"
# Error numbers of PBS modulo 256 (pbs_error.h).
_UNKNOWN, _FINISHED = 153, 35
_WIDTH = 76


class Answer(NamedTuple):
    """Exit code, standard output and standard error of a command."""

    code: int = 0
    output: str = ""
    errors: str = ""


def answer(table: JobTable, faults: Collection[str], call: Mapping[str, Any]) -> Answer:
    """Return the answer to a call: a command, its arguments, its folder and its variables."""
    command, words = call["command"], call["arguments"]
    if command in ("qsub", "qdel"):
        return _qsub(table, call) if command == "qsub" else _qdel(table, words)
    letters = "".join(word[1:] for word in words if word.startswith("-"))
    if command == "pbsnodes":
        nodes = {node_name(number): _node(table, number) for number in range(table.size.nodes)}
        return _answer("", nodes)
    if command == "qselect":
        ids = [job.id for job in table.jobs.values() if not job.has_ended or "x" in letters]
        return Answer(output="".join(f"{one}\n" for one in ids))
    if "B" in letters or "Q" in letters:
        queues = ("Queue: ", _QUEUES)
        return _answer(*(queues if "Q" in letters else ("Server: ", {SERVER: _server(faults)})))
    return _jobs(table, faults, words, letters)


def _qsub(table: JobTable, call: Mapping[str, Any]) -> Answer:
    try:
        request = read_request(call["arguments"], call["folder"], call["variables"])
    except RefusedError as refusal:
        return Answer(refusal.code, errors=f"qsub: {refusal}\n")
    except (OSError, ValueError, getopt.GetoptError) as failure:
        return Answer(2, errors=f"qsub: {failure}\n")
    return Answer(output=f"{table.add(request, call['variables'], call['folder']).id}\n")


def _qdel(table: JobTable, words: Sequence[str]) -> Answer:
    errors, code = "", 0
    for word in words:
        job = table.jobs.get(word)
        if job is None:
            errors, code = f"{errors}qdel: Unknown Job Id {word}\n", _UNKNOWN
        elif job.has_ended:
            errors, code = f"{errors}qdel: Job has finished {word}\n", _FINISHED
        else:
            table.delete(job)
    return Answer(code, errors=errors)


def _jobs(table: JobTable, faults: Collection[str], words: Sequence[str], letters: str) -> Answer:
    """Answer `qstat -f` of jobs; the exit code is that of the last error."""
    if "x" in letters and "no-history" in faults:
        return Answer(1, errors="qstat: PBS is not configured to maintain job history\n")
    listed: dict[str, dict[str, Any]] = {}
    errors, code = "", 0
    for word in (word for word in words if not word.startswith("-")):
        job = table.jobs.get(word)
        if job is None or (job.has_ended and "history-gone" in faults):
            errors, code = f"{errors}qstat: Unknown Job Id {word}\n", _UNKNOWN
        elif job.has_ended and "x" not in letters:
            text = "Job has finished, use -x or -H to obtain historical job information"
            errors, code = f"{errors}qstat: {job.id} {text}\n", _FINISHED
        else:
            listed[job.id] = attributes(job)
    return Answer(code, _answer("Job Id: ", listed).output, errors)


def attributes(job: PbsJob) -> dict[str, Any]:
    """Return attributes of a job, of those that `qstat -f` lists."""
    request = job.request
    held = job.state == "H" or (job.has_ended and not job.started and request.held)
    found: dict[str, Any] = {
        "Job_Name": request.name,
        "Job_Owner": f"{getpass.getuser()}@{SERVER}",
        "job_state": job.state,
        "queue": QUEUE,
        "server": SERVER,
        "ctime": time.asctime(time.localtime(job.created)),
        "Hold_Types": "u" if held else "n",
        "Output_Path": f"{SERVER}:{job.output}",
        "substate": job.substate,
        "Variable_List": request.variables,
    }
    if job.placed:
        found["exec_host"] = "+".join(f"{node_name(n)}/0*{one.ncpus}" for n, one in job.placed)
    if job.started:
        found["stime"] = time.asctime(time.localtime(job.started))
    if job.comment:
        found["comment"] = job.comment
    if job.exit_status is not None:
        found["Exit_status"] = job.exit_status
    return found


def _server(faults: Collection[str]) -> dict[str, Any]:
    kept = {"job_history_enable": "True", "job_history_duration": "336:00:00"}
    return {
        "server_state": "Active",
        "state_count": "Transit:0 Queued:0 Held:0 Waiting:0 Running:0 Exiting:0 Begun:0 ",
        "default_queue": QUEUE,
        "resources_default": {"ncpus": 1},
        "default_chunk": {"ncpus": 1},
        **({} if "no-history" in faults else kept),
        "pbs_version": VERSION,
    }


_QUEUES = {
    QUEUE: {
        "queue_type": "Execution",
        "state_count": "Transit:0 Queued:0 Held:0 Waiting:0 Running:0 Exiting:0 Begun:0 ",
        "resources_max": {"walltime": "01:00:00"},
        "enabled": "True",
        "started": "True",
    }
}


def _node(table: JobTable, number: int) -> dict[str, Any]:
    size = table.size
    available = {"host": node_name(number), "mem": f"{size.mem >> 10}kb", "ncpus": size.ncpus}
    gpus = {"ngpus": size.ngpus} if size.ngpus else {}
    found = {"Mom": node_name(number), "state": "free", "pcpus": size.ncpus}
    return {**found, "resources_available": {**available, **gpus}, "sharing": "default_shared"}


def _answer(head: str, found: Mapping[str, Any]) -> Answer:
    return Answer(output="".join(_text(f"{head}{name}", one) for name, one in found.items()))


def _text(head: str, values: Mapping[str, Any]) -> str:
    lines = [head]
    for name, value in values.items():
        if name == "Variable_List":
            listed = ",".join(f"{one}={text}" for one, text in value.items())
            lines.append(_folded(f"    {name} = {listed}"))
        elif isinstance(value, dict):
            lines += [f"    {name}.{part} = {text}" for part, text in value.items()]
        else:
            lines.append(_folded(f"    {name} = {value}"))
    return "\n".join(lines) + "\n\n"


def _folded(line: str) -> str:
    """Continue a long line on lines that begin with a tab, as qstat -f does."""
    return "\n\t".join(line[at : at + _WIDTH] for at in range(0, len(line), _WIDTH))
