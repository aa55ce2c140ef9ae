"""Jobs that Slurm still knows: one squeue for all of them -> how each stands."""

from __future__ import annotations

import datetime
import logging
import re
from collections.abc import Collection, Iterator

from hpc_train.model.submission import Cluster, JobState, Standing
from hpc_train.model.value import Value
from hpc_train.submissions.slurm.commands import ask, unanswered
from hpc_train.submissions.slurm.reasons import sentence
from hpc_train.submissions.slurm.states import job_state

# A job's name and comment hold what their user likes, even line ends; these two hardly anybody.
FIELD, RECORD = "\x1f", "\x1e"
_FORMAT = FIELD.join(("%i", "%T", "%S", "%N", "%r", "%j", "%k")) + RECORD
# Linux takes 128 KiB in one argument.
_LONGEST = 100_000
# Slurm's largest MaxArraySize (man slurm.conf).
_ELEMENTS = 4_000_001
_JOB = re.compile(r"([0-9]+)(?:_([0-9]+)|_\[(.+)\]|\+([0-9]+))?")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+)(?::([0-9]+))?)?")


class Entry(Value, frozen=True, kw_only=True):
    """One job, or one element of an array (`123_4`)."""

    job: str
    standing: Standing
    comment: str
    name: str


class QueueAnswer(Value, frozen=True, kw_only=True):
    """What Slurm said, or on one line why it could not be asked."""

    entries: tuple[Entry, ...] = ()
    failure: str = ""


def squeue(cluster: Cluster, jobs: Collection[str], user: str | None = None) -> QueueAnswer:
    """Ask for jobs, or with `user` for all that belong to him; jobs unknown to Slurm are left out.

    Slurm forgets a job MinJobAge seconds (300 by default) after its end.
    """
    which = [f"--user={user}"] if user is not None else selection(jobs)
    if user is None and not base_ids(jobs):
        return QueueAnswer()
    # --all: jobs in hidden partitions too.
    done = ask(
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
        # A word of the site's, and nothing of Slurm's: that no job is there was not said.
        return QueueAnswer(failure=f"squeue said {done.stdout.strip()[:200]!r}")
    return QueueAnswer(entries=entries if user is not None else wanted(entries, jobs))


def parse(text: str) -> tuple[Entry, ...]:
    """Read what squeue prints; a record of another shape is left out, with a warning."""
    entries: list[Entry] = []
    for record in text.split(RECORD):
        # Of several clusters, squeue writes a line with the name of each before its jobs.
        fields = record.lstrip("\n").split(FIELD, 6)
        try:
            word, state, start, nodes, reason, name, comment = fields
            ids = job_ids(word.rpartition("\n")[2])
        except ValueError:
            if record.strip() and not record.lstrip().startswith("CLUSTER: "):
                logging.getLogger(__name__).warning("squeue said, of no known shape: %r", record)
            continue
        standing = _standing(state, reason, epoch(start), nodes)
        said = "" if comment == "(null)" else comment
        entries += [Entry(job=job, standing=standing, comment=said, name=name) for job in ids]
    return tuple(entries)


def _standing(word: str, reason: str, start: float | None, nodes: str) -> Standing:
    state, said = job_state(word)
    if state is JobState.PENDING:
        said = sentence(reason) or said
    elif state is JobState.FAILED:
        said = sentence(reason)
    if state.finished and not nodes:
        # It never started; Slurm gives the time of its end for that of its start.
        start = None
    return Standing(state=state, reason=said, start=start, nodes=nodes)


def epoch(text: str) -> float | None:
    """Return a local time of Slurm's in seconds since the epoch; None for N/A and the like."""
    try:
        return datetime.datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def base_ids(jobs: Collection[str]) -> tuple[str, ...]:
    """Return the distinct ids without the elements of arrays, the oldest first."""
    ids = {job.partition("_")[0] for job in jobs}
    return tuple(sorted((i for i in ids if i.isascii() and i.isdecimal()), key=int))


def selection(jobs: Collection[str]) -> list[str]:
    """Return the option that selects jobs; none when it would be too long for one."""
    option = f"--jobs={','.join(base_ids(jobs))}"
    return [option] if len(option) <= _LONGEST else []


def wanted(entries: Collection[Entry], jobs: Collection[str]) -> tuple[Entry, ...]:
    """Keep the entries of jobs; the id of an array stands for all its elements, also in squeue's
    answer: an array that was cancelled whole has no elements there.
    """
    asked = {*jobs, *base_ids(jobs)}
    return tuple(
        entry for entry in entries if entry.job in asked or entry.job.partition("_")[0] in jobs
    )


def job_ids(word: str) -> tuple[str, ...]:
    """Return the jobs in `123`, `123_4` or `123_[1-3,7%2]`; of `123+0` and `123+1` the first.

    Raises:
        ValueError: a word of another shape.
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
