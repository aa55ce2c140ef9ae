"""Calls of qsub: a submission, retried if the server is slow, never made twice."""

from __future__ import annotations

import datetime
import logging
import re
import time
import uuid

import msgspec

from hpc_train.base.errors import SubmitError
from hpc_train.base.processes import Finished, notice_if_slow
from hpc_train.pbs.jobs import (
    MARK,
    NOT_REACHED,
    call_pbs,
    jobs_of,
    message_of,
    transient,
    with_mark,
)
from hpc_train.runs.executor import ExecutorOptions
from hpc_train.runs.run import RunFolder, Submission
from hpc_train.runs.submission_file import owner, write

_PAUSES_S = (2.0, 4.0, 8.0, 16.0, 30.0)
_UNDER_WAY_S = 15.0
# OpenPBS gives a hook of the server 30 s. A later end would let `search` take a job for lost.
_PATIENCE_S = 60.0
# No search begins later than this after a call, and no call later after the first one.
_SEARCH_S = 70.0
_REPEAT_S = 120.0
_JOB_ID = re.compile(r"^([0-9]+\.[\w.-]+)\s*$", re.MULTILINE)
# Parts of qsub's messages -> what to do.
_ADVICE = {
    "Unknown queue": "partition names a queue; qstat -Q lists them",
    "Unknown resource": "directives or the profile's pbs.chunk name one that does not exist here",
    "violates queue and/or server resource limits": "request less, or another queue; qstat -Qf",
    "exceed": "wait until your other jobs end",
    "Unauthorized Request": "your account may not use this queue or project",
    "Illegal attribute or resource value": "see the #PBS lines: hpctrain render",
    "project": "account names the project",
    "ccount": "account names the project",
}


def submit(run: RunFolder, options: ExecutorOptions) -> None:
    """Submit a run, and write its submission.json before and after the call.

    If the process is killed before the answer, the job is found by its mark.

    Raises:
        SubmitError: refused; `transient` if it is unknown whether the job was accepted.
    """
    mark = f"hpctrain:{uuid.uuid4().hex[:16]}"
    folder = str(run.path.absolute())
    variables = f"HPCTRAIN_RUN={quoted(folder)},{MARK}={mark}"
    script = str(run.script.absolute())
    request = Submission(
        executor="pbs",
        native_id="",
        submitted="",
        cluster=options.cluster,
        comment=mark,
        command=("qsub", "-o", f"{folder}/logs/job.out", "-v", variables, script),
    )
    try:
        job = _job_id(run, request)
    except SubmitError as failure:
        if not failure.transient:
            run.submission.unlink(missing_ok=True)
        raise
    _record(run, request, job)


def quoted(folder: str) -> str:
    """Quote a path in the list of -v, where a comma begins the next variable.

    Raises:
        SubmitError: qsub cannot pass it.
    """
    if re.search(r"['\"\\\n]", folder):
        raise SubmitError(
            f"{folder!r}: qsub cannot pass a folder with a quote, a backslash or a line break",
            "--results with another folder",
        )
    return f"'{folder}'" if re.search(r"[^\w./:=+@%~-]", folder) else folder


def _record(run: RunFolder, request: Submission, job: str) -> None:
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    write(run, msgspec.structs.replace(request, native_id=job, submitted=now))


def _job_id(run: RunFolder, request: Submission) -> str:
    """Return the id of the job, repeating the call only if the server does not have it.

    Raises:
        SubmitError: as for `submit`.
    """
    begun, reached = time.monotonic(), False
    for pause_s in (*_PAUSES_S, None):
        # Immediately before: after a kill in between, the state is unknown for two minutes.
        _record(run, request, "")
        done = _qsub(request.command)
        match = _JOB_ID.search(done.stdout)
        if match is not None:
            return match[1]
        message = _refusal(done)
        reached = reached or not _is_not_reached(message)
        if pause_s is None or time.monotonic() - begun > _REPEAT_S:
            break
        job, answered = _find(run, request.comment, _delay(message, pause_s))
        if job:
            return job
        if not answered:
            break
    raise _unanswered(run, message, reached=reached)


def _qsub(command: tuple[str, ...]) -> Finished:
    """Call qsub, and say so if it waits for the server."""
    with notice_if_slow("qsub", f"; it is waited for up to {_PATIENCE_S:.0f} s"):
        return call_pbs(*command, timeout_s=_PATIENCE_S)


def _unanswered(run: RunFolder, message: str, *, reached: bool) -> SubmitError:
    """Return the error after the last call; a request that did not reach PBS is not accepted."""
    if not reached:
        hint = "qstat -B answers when the server does; submit again then"
        return SubmitError(f"PBS cannot be reached, and has no job of this: {message}", hint)
    home = run.path.parent.name
    hint = f"hpctrain status {home}   says whether PBS has it\n"
    hint += f"hpctrain retry {home}   submits it if PBS never received it"
    return SubmitError(f"qsub was not answered: {message}", hint, transient=True)


def _is_not_reached(message: str) -> bool:
    return any(words in message.lower() for words in NOT_REACHED)


def _refusal(done: Finished) -> str:
    """Return the message of a call that may have been accepted.

    Raises:
        SubmitError: it was refused.
    """
    message = message_of(done)
    if done.returncode != 0 and not transient(done.stderr):
        advice = next((text for words, text in _ADVICE.items() if words in message), "")
        raise SubmitError(f"qsub: {message}", advice)
    return message if done.returncode else f"it printed no job id: {done.stdout.strip()[:200]!r}"


def _delay(message: str, pause_s: float) -> float:
    """Return the delay, and log it: a request that reached the server may be in progress."""
    if not _is_not_reached(message):
        pause_s = max(pause_s, _UNDER_WAY_S)
    logging.getLogger(__name__).warning(
        "PBS does not answer (%s); qselect says in %.0f s whether it has the job", message, pause_s
    )
    return pause_s


def _find(run: RunFolder, mark: str, pause_s: float) -> tuple[str, bool]:
    """Wait, then search for the job; return whether the server responded."""
    deadline = time.monotonic() + _SEARCH_S
    for wait_s in (pause_s, *_PAUSES_S):
        if time.monotonic() + wait_s > deadline:
            break
        time.sleep(wait_s)
        jobs, failure = jobs_of(owner(run.path))
        if not failure:
            mine = with_mark(jobs, mark)
            if len(mine) > 1:
                # The request was accepted late, and repeated: delete one of the two jobs.
                call_pbs("qdel", *mine[1:])
            return (mine[0] if mine else ""), True
    return "", False
