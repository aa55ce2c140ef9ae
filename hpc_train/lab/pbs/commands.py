"""The commands of the small PBS -> their answers, in the shapes of a recorded OpenPBS 23.06."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hpc_train.lab.pbs.command_answer import CommandAnswer
from hpc_train.lab.pbs.faults import Faults
from hpc_train.lab.pbs.job import SERVER, PbsJob, node_name
from hpc_train.lab.pbs.job_attributes import attributes
from hpc_train.lab.pbs.job_table import JobTable
from hpc_train.lab.pbs.qsub_request import read_request
from hpc_train.lab.pbs.resource_list import RefusedError
from hpc_train.lab.pbs.server_answers import MOST_S, QUEUE, VERSION, nodes_answer, server_answer

# Error numbers of PBS modulo 256 (pbs_error.h).
_UNKNOWN, _FINISHED, _EXPIRED, _INVALID = 153, 35, 55, 156
_WIDTH = 76


def answer(
    table: JobTable, faults: Faults, command: str, words: Sequence[str], call: Mapping[str, Any]
) -> CommandAnswer:
    """Return the answer to a command; `call` has its folder and its variables."""
    if command == "qsub":
        return _qsub(table, words, call)
    if command == "qstat":
        return _qstat(table, faults, words)
    if command == "qselect":
        ended = "-x" in words and not faults.has("no-history")
        jobs = (job for job in table.jobs.values() if job.index is None)
        listed = [job.id for job in jobs if ended or not job.has_ended]
        return CommandAnswer(output="".join(f"{job}\n" for job in listed))
    if command == "pbsnodes":
        return nodes_answer(table, words)
    if command in _ON_JOBS:
        return _on_jobs(table, command, words)
    return CommandAnswer(code=2, errors=f"{command}: not a command of this PBS\n")


def _qsub(table: JobTable, words: Sequence[str], call: Mapping[str, Any]) -> CommandAnswer:
    try:
        request = read_request(words, call["folder"], call["variables"], QUEUE)
        if (request.walltime_s or 0) > MOST_S:
            raise RefusedError(188, "Job violates queue and/or server resource limits")
    except RefusedError as refusal:
        return refusal.answer
    job = table.add(request, dict(call["variables"]), call["folder"])
    return CommandAnswer(output=f"{job.id}\n")


def _qstat(table: JobTable, faults: Faults, words: Sequence[str]) -> CommandAnswer:
    options = {word for word in words if word.startswith("-")}
    letters = "".join(word[1:] for word in options)
    ids = [word for word in words if not word.startswith("-") and word != "json"]
    kept = not faults.has("no-history")
    broken = faults.has("broken-json")
    of_server = server_answer(table, words, history=kept, broken=broken)
    if of_server is not None:
        return of_server
    history = "x" in letters
    if history and not kept:
        text = "PBS is not configured to maintain job history"
        return CommandAnswer(code=1, errors=f"qstat: {text}\n")
    listed, errors, code = _listed(table, faults, ids, history=history)
    if "t" in letters:
        listed = [one for job in listed for one in (job, *job.members)]
    if "f" not in letters:
        return CommandAnswer(code=code, output=_table(listed), errors=errors)
    if "F" in letters:
        return CommandAnswer(code=code, output=_json(listed, faults), errors=errors)
    return CommandAnswer(code=code, output="".join(map(_text, listed)), errors=errors)


def _listed(
    table: JobTable, faults: Faults, ids: Sequence[str], *, history: bool
) -> tuple[list[PbsJob], str, int]:
    """Return the jobs of an answer, its errors and its exit code, that of the last error."""
    if not ids:
        jobs = (job for job in table.jobs.values() if job.index is None)
        return [job for job in jobs if history or not job.has_ended], "", 0
    listed, errors, code = [], "", 0
    for word in ids:
        job = _job(table, word)
        # An expired subjob is listed as long as its array has not ended.
        if job is None or (job.whole.has_ended and faults.has("history-gone")):
            errors, code = f"{errors}qstat: Unknown Job Id {word}\n", _UNKNOWN
        elif job.whole.has_ended and not history:
            text = "Job has finished, use -x or -H to obtain historical job information"
            errors, code = f"{errors}qstat: {job.id} {text}\n", _FINISHED
        else:
            listed.append(job)
    return listed, errors, code


def _job(table: JobTable, word: str) -> PbsJob | None:
    return table.jobs.get(word) or table.jobs.get(f"{word}.{SERVER}")


def _json(jobs: Iterable[PbsJob], faults: Faults) -> str:
    found = {job.id: attributes(job) for job in jobs}
    if faults.has("only-first"):
        found = dict(list(found.items())[:1])
    whole: dict[str, Any] = {
        "timestamp": int(time.time()),
        "pbs_version": VERSION,
        "pbs_server": SERVER,
        **({"Jobs": found} if found else {}),
    }
    text = json.dumps(whole, indent="\t", separators=(",", ":\t"))
    if faults.has("broken-json"):
        # A user's variable with a quote, as in openpbs 1255.
        text = text.replace('"Variable_List":\t{', '"Variable_List":\t{\n\t\t\t\t"X":\t"a"b",', 1)
    return f"{text}\n"


def _text(job: PbsJob) -> str:
    lines = [f"Job Id: {job.id}"]
    for name, value in attributes(job).items():
        if name == "Variable_List":
            lines.append(_folded(f"    {name} = {_list(value)}"))
        elif isinstance(value, dict):
            lines += [f"    {name}.{part} = {text}" for part, text in value.items()]
        else:
            lines.append(_folded(f"    {name} = {value}"))
    return "\n".join(lines) + "\n\n"


def _list(variables: Mapping[str, Any]) -> str:
    return ",".join(f"{name}={value}" for name, value in variables.items())


def _folded(line: str) -> str:
    """Continue a long line on lines that begin with a tab, as qstat -f does."""
    parts = [line[at : at + _WIDTH] for at in range(0, len(line), _WIDTH)]
    return "\n\t".join(parts)


def _table(jobs: Iterable[PbsJob]) -> str:
    rows = [
        f"{job.id:<17} {job.request.name[:16]:<16} {job.state} {job.request.queue}\n"
        for job in jobs
    ]
    return "".join([f"{'Job id':<17} {'Name':<16} S Queue\n", *rows]) if rows else ""


def _on_jobs(table: JobTable, command: str, words: Sequence[str]) -> CommandAnswer:
    errors, code = "", 0
    for word in (word for word in words if not word.startswith("-")):
        job = _job(table, word)
        if job is None:
            errors, code = f"{errors}{command}: Unknown Job Id {word}\n", _UNKNOWN
        elif refusal := _refusal(command, job):
            code, text = refusal
            errors = f"{errors}{command}: {text} {job.id}\n"
        else:
            _ON_JOBS[command](table, job)
    return CommandAnswer(code=code, errors=errors)


def _refusal(command: str, job: PbsJob) -> tuple[int, str] | None:
    """Return the error number and the message of a command that a job does not allow."""
    if job.whole.has_ended:
        return _FINISHED, "Job has finished"
    if job.has_ended:
        return _EXPIRED, "Request invalid for finished array subjob"
    if job.index is not None and command != "qdel":
        return _INVALID, "Invalid request"
    return None


def _hold(_: JobTable, job: PbsJob) -> None:
    if job.state == "Q":
        job.state, job.substate = "H", 20


def _release(_: JobTable, job: PbsJob) -> None:
    if job.state == "H":
        job.state, job.substate = "Q", 10


_ON_JOBS = {"qdel": JobTable.delete, "qhold": _hold, "qrls": _release}


def nodes_of(job: PbsJob) -> tuple[str, ...]:
    """Return the nodes of a job, in the order of its node file, each once."""
    return tuple(dict.fromkeys(node_name(number) for number, _ in job.placed))
