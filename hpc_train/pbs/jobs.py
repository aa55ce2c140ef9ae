"""Jobs of PBS: commands, answers of qstat, and states.

Codes and letters: OpenPBS 23.06, qstat(1B), pbs_job_attributes(7B), job.h; and its answers.
"""

import datetime
import os
import re
from collections.abc import Callable, Collection, Mapping

from hpc_train.base.processes import Finished, clean_environment, run as run_program
from hpc_train.runs.batch_executor import MarkedJobs
from hpc_train.runs.run import JobReport, JobState

# Names of attributes and their values as text, of each job, queue, node or server.
Attributes = dict[str, dict[str, str]]

_PENDING, _ENDED = frozenset("QWTHM"), frozenset("FX")
_ACTIVE = {
    **dict.fromkeys("REB", JobState.RUNNING),
    **dict.fromkeys("SU", JobState.SUSPENDED),
}
ENDING = "it is ending"
_FORGOTTEN = "PBS no longer knows it, and it recorded no end"
_TIMEOUT, _MEMORY = -29, (-26, -27)
# 256 or 128 and TERM; the substate of a job that was deleted.
_TERMINATED, _DELETED = (271, 143), 91
_HOLDS = {"u": "its owner", "o": "an operator", "s": "PBS, perhaps after errors at its start"}
_NEVER = re.compile(r"Can Never Run: *([^ ].*)")
_NOT_NOW = re.compile(r"Not Running: *([^ ].*)")
_HOST = re.compile(r"(?:\A|(?<=[+(]))([^/+(]{1,255})/")


def job_reports(
    jobs: Collection[str], no_answer: Callable[[str], JobReport]
) -> dict[str, JobReport]:
    """Return the state of each job of one server, with one qstat call.

    A job that the server does not know is LOST, unless its own files have more information: its
    history of finished jobs may be short or off.
    """
    known, failure = qstat(jobs)
    if failure:
        return dict.fromkeys(jobs, no_answer(failure))
    lost = JobReport(state=JobState.LOST, reason=_FORGOTTEN)
    return {job: report(job, known[job]) if job in known else lost for job in jobs}


def report(job: str, attributes: Mapping[str, str]) -> JobReport:
    """Return the state of a job from its attributes."""
    letter = attributes.get("job_state", "")
    nodes = ",".join(dict.fromkeys(_HOST.findall(attributes.get("exec_host", ""))))
    start = _epoch(attributes.get("stime", ""))
    if letter in _PENDING:
        return JobReport(state=JobState.PENDING, reason=_waiting(letter, attributes), job=job)
    if letter in _ACTIVE:
        reason = ENDING if letter == "E" else ""
        return JobReport(state=_ACTIVE[letter], reason=reason, start=start, nodes=nodes, job=job)
    if letter not in _ENDED:
        return JobReport(
            state=JobState.UNKNOWN, reason=f"unknown state of PBS: {letter!r}", job=job
        )
    state, reason = _end(attributes)
    return JobReport(state=state, reason=reason, start=start, nodes=nodes, job=job)


def _waiting(letter: str, attributes: Mapping[str, str]) -> str:
    comment = attributes.get("comment", "")
    holds = [_HOLDS[one] for one in attributes.get("Hold_Types", "") if one in _HOLDS]
    if letter == "H" or holds:
        by = f" by {' and '.join(holds)}" if holds else ""
        return f"it is held{by}; qrls releases it"
    if never := _NEVER.search(comment):
        return f"it can never run here: {never[1]}; cancel it, and request less"
    if now := _NOT_NOW.search(comment):
        return f"it waits: {now[1]}"
    return f"PBS says: {comment}" if comment else ""


def _end(attributes: Mapping[str, str]) -> tuple[JobState, str]:
    code = _whole(attributes.get("Exit_status", ""))
    deleted = _whole(attributes.get("substate", "")) == _DELETED
    if code is None or (code in _TERMINATED and deleted):
        by = attributes.get("comment", "").rpartition(" terminated by ")[2]
        return JobState.CANCELLED, f"deleted by {by}" if code is not None and by else "deleted"
    if code == 0:
        return JobState.COMPLETED, ""
    if code == _TIMEOUT:
        return JobState.TIMEOUT, "it exceeded its walltime"
    if code in _MEMORY:
        return JobState.OUT_OF_MEMORY, "it used more memory than it requested"
    if code < 0:
        words = (f"PBS ended it with {code}", attributes.get("comment", ""))
        return JobState.FAILED, ": ".join(filter(None, words))
    signal = code - 256 if code > 256 else code - 128
    return JobState.FAILED, f"signal {signal}" if 0 < signal < 65 else f"exit code {code}"


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _epoch(text: str) -> float | None:
    """Return PBS's local time (`Sun Nov 22 18:49:00 2026`) in seconds since the epoch."""
    try:
        return datetime.datetime.strptime(text, "%a %b %d %H:%M:%S %Y").timestamp()
    except (ValueError, OverflowError):
        return None


_TIMEOUT_S = 30.0
# Messages of PBS's commands, of its library and of libc for a server that does not answer, and of
# hpctrain for a command that was stopped (OpenPBS 23.06, pbs_err_to_txt).
_PASSING = (
    "cannot connect to server",
    "communication failure",
    "no permission to connect",
    "end of file",
    "premature end of message",
    "server is shutting down",
    "pbs server is not ready",
    "connection refused",
    "connection reset by peer",
    "connection timed out",
    "timed out",
    "broken pipe",
    "no route to host",
    "network is unreachable",
    "no answer within",
    "too many connections",
    "try again",
)


def call_pbs(*argv: str, timeout_s: float | None = None) -> Finished:
    """Run a command of PBS with messages in English; of an outer job, only the server is kept."""
    outer = ("PBS_JOB", "PBS_O_", "PBS_NODE", "PBS_TASK", "PBS_ARRAY", "PBS_QUEUE", "PBS_ENV")
    clean = clean_environment(os.environ)
    kept = {name: value for name, value in clean.items() if not name.startswith(outer)}
    return run_program(argv, timeout_s or _TIMEOUT_S, environment=kept | {"LC_ALL": "C"})


def transient(stderr: str) -> bool:
    """Whether an error of PBS is transient: its server is down, slow or restarting."""
    text = stderr.lower()
    return any(words in text for words in _PASSING)


def message_of(done: Finished) -> str:
    """Return the error of a command on one line, without the names of commands."""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    words = [
        line.partition(": ")[2]
        if line.startswith(("qsub: ", "qstat: ", "qdel: ", "qselect: "))
        else line
        for line in lines
    ]
    return "; ".join(words) or f"exit code {done.returncode}"


_UNKNOWN = ("Unknown Job Id", "Job has finished")
# A server without a history of finished jobs refuses -x.
_NO_HISTORY = "not configured to maintain job history"


def qstat(jobs: Collection[str]) -> tuple[Attributes, str]:
    """Query jobs of one server, also finished ones; return their attributes, or its error.

    Those that PBS does not know are left out. The text is asked for, because some servers write
    broken JSON (openpbs 1255, 2541).
    """
    if not jobs:
        return {}, ""
    done = call_pbs("qstat", "-x", "-f", *jobs)
    if _NO_HISTORY in done.stderr:
        done = call_pbs("qstat", "-f", *jobs)
    # An unknown job is an answer.
    known = any(words in done.stderr for words in _UNKNOWN)
    if done.returncode != 0 and (transient(done.stderr) or not known):
        return {}, message_of(done)
    return entries(done.stdout, "Job Id: "), ""


def entries(text: str, head: str) -> Attributes:
    """Return name -> attributes in the output of `qstat -f`, `qstat -Bf`, `-Qf` or `pbsnodes -a`.

    `head` is what a line with a name begins with. A long value continues on lines that begin with a
    tab.
    """
    found: Attributes = {}
    own: dict[str, str] = {}
    for line in text.replace("\n\t", "").splitlines():
        name, sign, value = line.strip().partition(" = ")
        if sign and line[:1].isspace():
            own.setdefault(name, value)
        elif line.strip() and not line[:1].isspace() and line.startswith(head):
            own = found.setdefault(line.removeprefix(head).strip(), {})
    return found


# The variable of a job that identifies it.
MARK = "HPCTRAIN_MARK"
_MARK = re.compile(rf"(?:^|,){MARK}=([^,]{{1,80}})")


def marked_jobs(user: str) -> MarkedJobs:
    """Return the jobs of a user, also finished ones."""
    done = call_pbs("qselect", "-x", "-u", user)
    if done.returncode != 0:
        return MarkedJobs((), message_of(done))
    known, failure = qstat(done.stdout.split())
    marks = {job: _MARK.search(one.get("Variable_List", "")) for job, one in known.items()}
    jobs = [(mark[1] if (mark := marks[job]) else "", report(job, known[job])) for job in known]
    return MarkedJobs(jobs, failure)
