"""Jobs of PBS: commands, answers of qstat, states, and the search for one without an id.

Codes and letters: OpenPBS 23.06, qstat(1B), pbs_job_attributes(7B), job.h; and its answers.
"""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from hpc_train.base.processes import Finished, clean_environment, run as run_program
from hpc_train.base.value import Value
from hpc_train.runs.run import JobReport, JobState, RunFolder, Submission
from hpc_train.runs.submission_file import owner, status_of, unknown_job

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


def job_reports(jobs: Collection[str]) -> dict[str, JobReport]:
    """Return the state of each job of one server, with one qstat call.

    A job that the server does not know is LOST, unless its own files have more information: its
    history of finished jobs may be short or off.
    """
    answer = qstat(jobs)
    if answer.failure:
        return dict.fromkeys(jobs, no_answer(answer.failure))
    lost = JobReport(state=JobState.LOST, reason=_FORGOTTEN)
    return {job: report(job, answer.jobs[job]) if job in answer.jobs else lost for job in jobs}


def no_answer(failure: str) -> JobReport:
    """Return the state of every job if PBS does not answer."""
    return JobReport(state=JobState.UNKNOWN, reason=f"PBS does not answer: {failure}")


def report(job: str, attributes: Mapping[str, Any]) -> JobReport:
    """Return the state of a job from its attributes."""
    letter = str(attributes.get("job_state", ""))
    nodes = node_list(str(attributes.get("exec_host", "")))
    start = _epoch(attributes.get("stime"))
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


def _waiting(letter: str, attributes: Mapping[str, Any]) -> str:
    comment = str(attributes.get("comment", ""))
    holds = [_HOLDS[one] for one in str(attributes.get("Hold_Types", "")) if one in _HOLDS]
    if letter == "H" or holds:
        by = f" by {' and '.join(holds)}" if holds else ""
        return f"it is held{by}; qrls releases it"
    if never := _NEVER.search(comment):
        return f"it can never run here: {never[1]}; cancel it, and request less"
    if now := _NOT_NOW.search(comment):
        return f"it waits: {now[1]}"
    return f"PBS says: {comment}" if comment else ""


def _end(attributes: Mapping[str, Any]) -> tuple[JobState, str]:
    code = _whole(attributes.get("Exit_status"))
    deleted = _whole(attributes.get("substate")) == _DELETED
    if code is None or (code in _TERMINATED and deleted):
        by = str(attributes.get("comment", "")).rpartition(" terminated by ")[2]
        return JobState.CANCELLED, f"deleted by {by}" if code is not None and by else "deleted"
    if code == 0:
        return JobState.COMPLETED, ""
    if code == _TIMEOUT:
        return JobState.TIMEOUT, "it exceeded its walltime"
    if code in _MEMORY:
        return JobState.OUT_OF_MEMORY, "it used more memory than it requested"
    return JobState.FAILED, _failure(code, str(attributes.get("comment", "")))


def _failure(code: int, comment: str) -> str:
    if code < 0:
        return f"PBS ended it with {code}: {comment}" if comment else f"PBS ended it with {code}"
    signal = code - 256 if code > 256 else code - 128
    return f"signal {signal}" if 0 < signal < 65 else f"exit code {code}"


def node_list(exec_host: str) -> str:
    """Return the nodes in `n1/0+n2/0*8`, each once, separated by commas."""
    return ",".join(dict.fromkeys(_HOST.findall(exec_host)))


def _whole(value: object) -> int | None:
    """Return a whole number, which the text form and some builds write as text."""
    try:
        return int(str(value))
    except ValueError:
        return None


def _epoch(value: object) -> float | None:
    """Return PBS's local time (`Sun Nov 22 18:49:00 2026`) in seconds since the epoch."""
    try:
        return datetime.datetime.strptime(str(value), "%a %b %d %H:%M:%S %Y").timestamp()
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
# After these errors the request was not accepted; after any other it may have been.
NOT_REACHED = ("cannot connect to server", "connection refused", "no route to host", "unreachable")


def call_pbs(*argv: str, timeout_s: float | None = None) -> Finished:
    """Run a command of PBS without the variables of an outer job, with messages in English."""
    return run_program(argv, timeout_s or _TIMEOUT_S, environment=environment())


def environment() -> dict[str, str]:
    """Return the environment of PBS's commands; of an outer job, only the server is kept."""
    outer = ("PBS_JOB", "PBS_O_", "PBS_NODE", "PBS_TASK", "PBS_ARRAY", "PBS_QUEUE", "PBS_ENV")
    clean = clean_environment(os.environ)
    kept = {name: value for name, value in clean.items() if not name.startswith(outer)}
    return kept | {"LC_ALL": "C"}


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


_UNKNOWN = "Unknown Job Id"
_FINISHED = "Job has finished"
# A server without a history of finished jobs refuses -x.
_NO_HISTORY = "not configured to maintain job history"
# Of those that an answer leaves out, so many are queried one by one.
_ALONE = 20


class QstatAnswer(Value, frozen=True, kw_only=True):
    """The attributes of jobs by their id, or the error of a server that did not answer."""

    jobs: dict[str, dict[str, Any]]
    failure: str = ""


def qstat(jobs: Collection[str]) -> QstatAnswer:
    """Query jobs of one server, also finished ones; those that PBS does not know are left out."""
    if not jobs:
        return QstatAnswer(jobs={})
    answer, errors = _query(jobs)
    if answer.failure or len(jobs) == 1:
        return answer
    left_out = [job for job in jobs if job not in answer.jobs and job not in errors]
    for job in left_out[:_ALONE]:
        answer.jobs.update(_query([job])[0].jobs)
    return answer


def _query(ids: Collection[str]) -> tuple[QstatAnswer, str]:
    """Query ids, as JSON or else as text; also return the errors, which name unknown jobs."""
    done = _qstat(("-F", "json"), ids)
    if _is_unanswered(done):
        return QstatAnswer(jobs={}, failure=message_of(done)), ""
    found = read_json(done.stdout)
    if found is None:
        done = _qstat((), ids)
        if _is_unanswered(done):
            return QstatAnswer(jobs={}, failure=message_of(done)), ""
        found = read_text(done.stdout)
    return QstatAnswer(jobs=found), done.stderr


def _qstat(form: tuple[str, ...], jobs: Collection[str]) -> Finished:
    done = call_pbs("qstat", "-x", "-f", *form, *jobs)
    if _NO_HISTORY in done.stderr:
        return call_pbs("qstat", "-f", *form, *jobs)
    return done


def _is_unanswered(done: Finished) -> bool:
    """Whether the server did not answer; an unknown job is an answer."""
    if done.returncode == 0:
        return False
    known = any(words in done.stderr for words in (_UNKNOWN, _FINISHED))
    return transient(done.stderr) or not known


def read_json(text: str) -> dict[str, dict[str, Any]] | None:
    """Return the jobs in the output of `qstat -f -F json`; None if it is no JSON."""
    # Before the JSON, stderr may have been merged into the output by a site's wrapper.
    try:
        answer = json.loads(text[text.index("{") :])
    except (ValueError, RecursionError):
        return None
    jobs = answer.get("Jobs", {}) if isinstance(answer, dict) else None
    return jobs if isinstance(jobs, dict) else None


def read_text(text: str) -> dict[str, dict[str, Any]]:
    """Return the jobs in the output of `qstat -f`, with values as text.

    A long value continues on lines that begin with a tab.
    """
    found: dict[str, dict[str, Any]] = {}
    own: dict[str, Any] = {}
    for line in _joined(text):
        if line.startswith("Job Id: "):
            own = found.setdefault(line.removeprefix("Job Id: ").strip(), {})
        elif line.startswith("    ") and " = " in line:
            name, _, value = line.strip().partition(" = ")
            own.setdefault(name, value)
    return found


def _joined(text: str) -> Iterator[str]:
    line = ""
    for part in text.split("\n"):
        if part.startswith("\t"):
            line += part[1:]
            continue
        yield line
        line = part
    yield line


# The variable of a job that identifies it.
MARK = "HPCTRAIN_MARK"
_NUMBER = re.compile(r"[0-9]+")


def jobs_of(user: str) -> tuple[dict[str, dict[str, Any]], str]:
    """Return the attributes of a user's jobs, also finished ones, and the error of no answer."""
    done = call_pbs("qselect", "-x", "-u", user)
    if done.returncode != 0:
        return {}, message_of(done)
    answer = qstat(done.stdout.split())
    return answer.jobs, answer.failure


def with_mark(jobs: Mapping[str, Mapping[str, Any]], mark: str) -> tuple[str, ...]:
    """Return the jobs that have a mark, the oldest first."""
    found = [job for job, attributes in jobs.items() if mark in _variables(attributes)]
    return tuple(sorted(found, key=_number))


def _variables(attributes: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the marks among the variables of a job, of JSON or of text."""
    known = attributes.get("Variable_List")
    if isinstance(known, dict):
        return (str(known.get(MARK, "")),)
    return tuple(re.findall(rf"(?:^|,){MARK}=([^,]+)", str(known)))


def _number(job: str) -> int:
    match = _NUMBER.match(job)
    return int(match[0]) if match else 0


def search(runs: Mapping[RunFolder, Submission]) -> dict[RunFolder, JobReport]:
    """Return the states of runs without a job id; `job` has the id if it was found."""
    found: dict[RunFolder, JobReport] = {}
    answers: dict[str, tuple[dict[str, dict[str, Any]], str]] = {}
    for run, submission in runs.items():
        user = owner(run.path)
        if user not in answers:
            answers[user] = jobs_of(user)
        jobs, failure = answers[user]
        # The request was accepted twice: the older job is used everywhere.
        mine = with_mark(jobs, submission.comment)
        found[run] = report(mine[0], jobs[mine[0]]) if mine else _without(run, submission, failure)
    return found


def _without(run: RunFolder, submission: Submission, failure: str) -> JobReport:
    """Return the state of a run whose job was not found: recorded by itself, pending or lost."""
    status = status_of(run)
    if status is not None and status.job:
        return msgspec.structs.replace(job_reports([status.job])[status.job], job=status.job)
    return no_answer(failure) if failure else unknown_job(submission, "qsub", "PBS")
