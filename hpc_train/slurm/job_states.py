"""Runs -> states in Slurm: from squeue, then sacct, by job id or by the job's comment."""

from __future__ import annotations

import datetime
import logging
import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Literal

import msgspec

from hpc_train.base.decode import load_data
from hpc_train.base.values import Value
from hpc_train.runs.batch_executor import MARK, MarkedJobs
from hpc_train.runs.run import JobReport, JobState, SlurmEndpoint
from hpc_train.runs.run_states import job_state
from hpc_train.slurm.slurm_commands import call_slurm, transient, unanswered


def job_reports(
    cluster: SlurmEndpoint, jobs: Mapping[str, str], since: str
) -> dict[str, JobReport]:
    """Return the states of jobs (id -> comment), with one squeue and, for the rest, one sacct.

    squeue keeps a job for MinJobAge (300 s by default) after its end. A job that neither lists is
    LOST, unless its own files have more information. `since` is the date (YYYY-MM-DD) of the oldest
    job.
    """
    answer = squeue(cluster, jobs)
    if answer.failure:
        return dict.fromkeys(jobs, no_answer(answer.failure))
    found = _listed(answer.entries, jobs)
    forgotten = [job for job in jobs if job not in found]
    rest = JobReport(state=JobState.LOST, reason="Slurm no longer knows it, and it recorded no end")
    if forgotten:
        past = sacct(cluster, forgotten, since)
        for entry in past.entries:
            known = _named(entry.report, entry.job)
            if not known.state.finished:
                # The accounting reports lost jobs as running.
                reason = f"it is {known.state.value} in the accounting, but not in the queue"
                known = JobReport(state=JobState.UNKNOWN, reason=reason, job=entry.job)
            found[entry.job] = known
        if transient(past.failure):
            rest = no_answer(past.failure)
    return {job: found.get(job, rest) for job in jobs}


def _listed(entries: Collection[QueueEntry], jobs: Mapping[str, str]) -> dict[str, JobReport]:
    """Return the state of each job that is listed, by itself or as part of an array."""
    by_id = {entry.job: entry for entry in entries}
    found = {}
    for job, comment in jobs.items():
        entry = by_id.get(job) or by_id.get(job.partition("_")[0])
        if entry is not None and (
            not comment or entry.comment == comment or not entry.comment.startswith(MARK)
        ):
            found[job] = _named(entry.report, job)
    return found


def no_answer(failure: str) -> JobReport:
    """Return the state of every job if Slurm does not answer."""
    return JobReport(state=JobState.UNKNOWN, reason=f"Slurm does not answer: {failure}")


def _named(report: JobReport, job: str) -> JobReport:
    return msgspec.structs.replace(report, job=job)


def marked_jobs(cluster: SlurmEndpoint, user: str) -> MarkedJobs:
    """Return the jobs of a user in the queue, with their comments."""
    answer = squeue(cluster, (), user)
    jobs = [(entry.comment, _named(entry.report, entry.job)) for entry in answer.entries]
    return MarkedJobs(jobs, answer.failure)


_LIMIT = re.compile(r"(?P<whose>Assoc|QOS|)(?P<kind>Grp|Max|Min)[A-Z]\w{1,60}")


class _File(Value, frozen=True, kw_only=True):
    """`slurm_reasons.yaml`: code -> sentence."""

    schema: Literal[1]
    reasons: dict[str, str]


@cache
def _reasons() -> dict[str, str]:
    return load_data("slurm_reasons.yaml", _File).reasons


def sentence(reason: str) -> str:
    """Return the meaning of a reason of Slurm, and the remedy if any; empty for no reason."""
    code = reason.strip()
    if code.startswith("(") and code.endswith(")"):
        code = code[1:-1]
    if code in ("", "None", "null"):
        return ""
    # scontrol writes underscores in the place of spaces.
    spaced = code.replace("_", " ")
    known = _reasons()
    if spaced in known:
        return known[spaced]
    # What Slurm appends: `ReqNodeNotAvail, UnavailableNodes:lab2`, `RaisedSignal:9`.
    name, *rest = re.split("[,:]", code, maxsplit=1)
    tail = "".join(rest).strip(" _")
    if name in known:
        return f"{known[name]} ({tail})" if tail and not tail.endswith(":") else known[name]
    limit = _LIMIT.fullmatch(code)
    return _limit(limit, code) if limit else f"Slurm's reason: {code}"


def _limit(limit: re.Match[str], code: str) -> str:
    owner = "its QOS" if limit["whose"] == "QOS" else "its account"
    if limit["kind"] == "Min":
        return f"it requests less than the minimum of {owner} ({code}); request more"
    if "PerJob" in code or "PerNode" in code:
        return f"it requests more than {owner} allows for one job ({code}); request less"
    return f"a limit of {owner} is reached ({code}); it starts when others end"


# A job's name and comment may contain any text, even line ends, but hardly these two characters.
FIELD, RECORD = "\x1f", "\x1e"
_FORMAT = FIELD.join(("%i", "%T", "%S", "%N", "%r", "%j", "%k")) + RECORD
# Linux limits one argument to 128 KiB.
_LONGEST = 100_000
# Slurm's largest MaxArraySize (man slurm.conf).
_ELEMENTS = 4_000_001
_JOB = re.compile(r"([0-9]+)(?:_([0-9]+)|_\[(.+)\]|\+([0-9]+))?")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+)(?::([0-9]+))?)?")


class QueueEntry(Value, frozen=True, kw_only=True):
    """One job, or one element of an array (`123_4`)."""

    job: str
    report: JobReport
    comment: str
    name: str


class QueueAnswer(Value, frozen=True, kw_only=True):
    """The answer of squeue, or its error on one line."""

    entries: tuple[QueueEntry, ...] = ()
    failure: str = ""


def squeue(cluster: SlurmEndpoint, jobs: Collection[str], user: str | None = None) -> QueueAnswer:
    """Query jobs, or with `user` all jobs of that user; jobs unknown to Slurm are left out.

    Slurm removes a job from the queue MinJobAge seconds (300 by default) after its end.
    """
    which = [f"--user={user}"] if user is not None else selection(jobs)
    if user is None and not base_ids(jobs):
        return QueueAnswer()
    # --all: jobs in hidden partitions too.
    done = call_slurm(
        cluster,
        "squeue",
        "--noheader",
        "--array",
        "--all",
        "--states=all",
        f"--format={_FORMAT}",
        *which,
    )
    if "Invalid job id specified" in done.stderr:
        return QueueAnswer()
    failure = unanswered(done)
    if failure:
        return QueueAnswer(failure=failure)
    entries = parse_queue(done.stdout)
    if done.stdout.strip() and not entries:
        # Output of a site's wrapper without Slurm's: it does not mean that there is no job.
        return QueueAnswer(failure=f"unexpected output of squeue: {done.stdout.strip()[:200]!r}")
    return QueueAnswer(entries=entries if user is not None else wanted(entries, jobs))


def _rows(text: str, end: str, command: str) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yield the ids and seven fields of each record; a malformed one is left out with a warning."""
    for record in text.split(end):
        fields = record.lstrip("\n").split(FIELD, 6)
        # For several clusters, squeue prints a line with the name of each before its jobs.
        fields[0] = fields[0].rpartition("\n")[2]
        try:
            ids = job_ids(fields[0]) if len(fields) == 7 else ()
            malformed = len(fields) != 7
        except ValueError:
            ids, malformed = (), True
        if not malformed:
            yield ids, fields
        elif record.strip() and not record.lstrip().startswith("CLUSTER: "):
            logging.getLogger(__name__).warning("unexpected record of %s: %r", command, record)


def parse_queue(text: str) -> tuple[QueueEntry, ...]:
    """Parse the output of squeue; a malformed record is skipped with a warning."""
    entries: list[QueueEntry] = []
    for ids, fields in _rows(text, RECORD, "squeue"):
        _, state, start, nodes, reason, name, comment = fields
        report = _report(state, reason, sentence(reason), epoch(start), nodes)
        mark = "" if comment == "(null)" else comment
        entries += [QueueEntry(job=job, report=report, comment=mark, name=name) for job in ids]
    return tuple(entries)


def _report(word: str, reason: str, failure: str, start: float | None, nodes: str) -> JobReport:
    state, text = job_state(word)
    if state is JobState.PENDING:
        text = sentence(reason) or text
    elif state is JobState.FAILED:
        text = failure
    if nodes == "None assigned" or (state.finished and not nodes):
        # It never started; Slurm gives the end time as its start time.
        nodes, start = "", None
    return JobReport(state=state, reason=text, start=start, nodes=nodes)


def epoch(text: str) -> float | None:
    """Return a local time of Slurm in seconds since the epoch; None for N/A and similar values."""
    try:
        return datetime.datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def base_ids(jobs: Collection[str]) -> tuple[str, ...]:
    """Return the distinct ids without the elements of arrays, the oldest first."""
    ids = {job.partition("_")[0] for job in jobs}
    return tuple(sorted((i for i in ids if i.isascii() and i.isdecimal()), key=int))


def selection(jobs: Collection[str]) -> list[str]:
    """Return the option that selects jobs; empty if it would be too long."""
    option = f"--jobs={','.join(base_ids(jobs))}"
    return [option] if len(option) <= _LONGEST else []


def wanted(entries: Collection[QueueEntry], jobs: Collection[str]) -> tuple[QueueEntry, ...]:
    """Keep the entries of jobs; the id of an array includes all its elements.

    This also applies to the answer of squeue, in which an array that was cancelled as a whole has
    no elements.
    """
    ids = {*jobs, *base_ids(jobs)}
    return tuple(
        entry for entry in entries if entry.job in ids or entry.job.partition("_")[0] in jobs
    )


def job_ids(word: str) -> tuple[str, ...]:
    """Return the jobs in `123`, `123_4` or `123_[1-3,7%2]`; of `123+0` and `123+1` the first.

    Raises:
        ValueError: a malformed id.
    """
    match = _JOB.fullmatch(word)
    if match is None:
        raise ValueError(word)
    base, element, elements, offset = match.groups()
    if elements is not None:
        return tuple(f"{base}_{index}" for index in _elements(elements))
    if offset is not None:
        return (base,) if int(offset) == 0 else ()
    return (base,) if element is None else (f"{base}_{element}",)


def _elements(text: str) -> Iterator[int]:
    for part in text.partition("%")[0].split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise ValueError(text)
        first, last, step = [int(number) if number else None for number in match.groups()]
        start, stop = first or 0, (first if last is None else last) or 0
        if stop - start >= _ELEMENTS:
            raise ValueError(text)
        yield from range(start, stop + 1, step or 1)


_ACCOUNTED = "JobID,State,Start,NodeList,ExitCode,Reason,JobName"
# Not a signal: a real Slurm reported it for a log that could not be opened.
_NOT_STARTED = "53"


def sacct(cluster: SlurmEndpoint, jobs: Collection[str], since: str) -> QueueAnswer:
    """Query the accounting for jobs submitted since a date (YYYY-MM-DD); there may be none.

    The query starts one day earlier: the date may be of another time zone, and Slurm's commands
    refuse a date in the future.
    """
    if not base_ids(jobs):
        return QueueAnswer()
    day = datetime.date.fromisoformat(since) - datetime.timedelta(days=1)
    done = call_slurm(
        cluster,
        "sacct",
        "--allocations",
        "--noheader",
        "--parsable2",
        f"--delimiter={FIELD}",
        f"--starttime={day.isoformat()}",
        f"--format={_ACCOUNTED}",
        *selection(jobs),
    )
    failure = unanswered(done)
    if failure:
        return QueueAnswer(failure=failure)
    return QueueAnswer(entries=wanted(parse_accounting(done.stdout), jobs))


def parse_accounting(text: str) -> tuple[QueueEntry, ...]:
    """Parse the output of sacct; a malformed line is skipped with a warning."""
    entries: dict[str, QueueEntry] = {}
    for ids, fields in _rows(text, "\n", "sacct"):
        word, state, start, nodes, code, reason, name = fields
        # The reason of a failed job is the one for which it was pending.
        report = _report(state, reason, _exit(code), epoch(start), nodes)
        for job in ids:
            # The record of pending elements, `9_[7,9]`, may list elements that have their own
            # record.
            if "[" not in word or job not in entries:
                entries[job] = QueueEntry(job=job, report=report, comment="", name=name)
    return tuple(entries.values())


def _exit(code: str) -> str:
    """Return the meaning of `7:0` or `0:9`, exit code and signal."""
    status, _, signal = code.partition(":")
    if signal == _NOT_STARTED:
        return "it could not be started, most often because its log cannot be written"
    if signal not in ("", "0"):
        return f"signal {signal}"
    return f"exit code {status}" if status not in ("", "0") else ""
