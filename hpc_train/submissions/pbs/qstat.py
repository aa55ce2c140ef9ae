"""Jobs of PBS -> their attributes, with one qstat call; JSON that cannot be read, as text.

The JSON of qstat breaks in known ways: values of variables are written without quotes or escapes
(openpbs 1255, 2541), and a build returned only the first of several jobs (openpbs 2672).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from hpc_train.model.value import Value
from hpc_train.submissions.pbs.job_arrays import array_of
from hpc_train.submissions.pbs.pbs_commands import call_pbs, message_of, transient
from hpc_train.subprocesses import Finished

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
    """Query jobs of one server, also finished ones; those that PBS does not know are left out.

    Subjobs are queried by their arrays, whose answer has them all.
    """
    if not jobs:
        return QstatAnswer(jobs={})
    arrays = list(dict.fromkeys(map(array_of, jobs)))
    answer, errors = _query(arrays, ("-t",) if any(job not in jobs for job in arrays) else ())
    if answer.failure:
        return answer
    left_out = [job for job in jobs if job not in answer.jobs and array_of(job) not in errors]
    for job in left_out[:_ALONE] if len(jobs) > 1 or arrays != list(jobs) else ():
        answer.jobs.update(_query([job], ())[0].jobs)
    return answer


def _query(ids: Collection[str], expanded: tuple[str, ...]) -> tuple[QstatAnswer, str]:
    """Query ids, as JSON or else as text; also return the errors, which name unknown jobs."""
    done = _call((*expanded, "-F", "json"), ids)
    if _is_unanswered(done):
        return QstatAnswer(jobs={}, failure=message_of(done)), ""
    found = read_json(done.stdout)
    if found is None:
        done = _call(expanded, ids)
        if _is_unanswered(done):
            return QstatAnswer(jobs={}, failure=message_of(done)), ""
        found = read_text(done.stdout)
    return QstatAnswer(jobs=found), done.stderr


def _call(form: tuple[str, ...], jobs: Collection[str]) -> Finished:
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
