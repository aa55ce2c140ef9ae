"""Jobs in the queue -> states, with one squeue call."""

from __future__ import annotations

import datetime
import logging
import re
from collections.abc import Collection, Iterator

from hpc_train.job_state import job_state
from hpc_train.model.submission import JobReport, JobState, SlurmEndpoint
from hpc_train.model.value import Value
from hpc_train.submissions.slurm.reason_codes import sentence
from hpc_train.submissions.slurm.slurm_commands import call_slurm, unanswered

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
    entries = parse(done.stdout)
    if done.stdout.strip() and not entries:
        # Output of a site's wrapper without Slurm's: it does not mean that there is no job.
        return QueueAnswer(failure=f"unexpected output of squeue: {done.stdout.strip()[:200]!r}")
    return QueueAnswer(entries=entries if user is not None else wanted(entries, jobs))


def parse(text: str) -> tuple[QueueEntry, ...]:
    """Parse the output of squeue; a malformed record is skipped with a warning."""
    entries: list[QueueEntry] = []
    for record in text.split(RECORD):
        # For several clusters, squeue prints a line with the name of each before its jobs.
        fields = record.lstrip("\n").split(FIELD, 6)
        try:
            word, state, start, nodes, reason, name, comment = fields
            ids = job_ids(word.rpartition("\n")[2])
        except ValueError:
            if record.strip() and not record.lstrip().startswith("CLUSTER: "):
                logging.getLogger(__name__).warning("unexpected record of squeue: %r", record)
            continue
        report = _report(state, reason, epoch(start), nodes)
        job_comment = "" if comment == "(null)" else comment
        entries += [
            QueueEntry(job=job, report=report, comment=job_comment, name=name) for job in ids
        ]
    return tuple(entries)


def _report(word: str, reason: str, start: float | None, nodes: str) -> JobReport:
    state, text = job_state(word)
    if state is JobState.PENDING:
        text = sentence(reason) or text
    elif state is JobState.FAILED:
        text = sentence(reason)
    if state.finished and not nodes:
        # It never started; Slurm gives the end time as its start time.
        start = None
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
