"""Jobs that are no longer in the queue -> final states, with one sacct call."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Collection

from hpc_train.job_state import job_state
from hpc_train.model.submission import JobReport, JobState, SlurmEndpoint
from hpc_train.submissions.slurm.reason_codes import sentence
from hpc_train.submissions.slurm.slurm_commands import call_slurm, unanswered
from hpc_train.submissions.slurm.squeue import (
    FIELD,
    QueueAnswer,
    QueueEntry,
    base_ids,
    epoch,
    job_ids,
    selection,
    wanted,
)
from hpc_train.subprocesses import Finished

_FIELDS = "JobID,State,Start,NodeList,ExitCode,Reason,JobName"
# Not a signal: a real Slurm reported it for a log that could not be opened.
_NOT_STARTED = "53"


def sacct(cluster: SlurmEndpoint, jobs: Collection[str], since: str) -> QueueAnswer:
    """Query the accounting for jobs submitted since a date; there may be no accounting."""
    if not base_ids(jobs):
        return QueueAnswer()
    done = call_sacct(cluster, jobs, since, f"--format={_FIELDS}")
    failure = unanswered(done)
    if failure:
        return QueueAnswer(failure=failure)
    return QueueAnswer(entries=wanted(parse(done.stdout), jobs))


def call_sacct(
    cluster: SlurmEndpoint,
    jobs: Collection[str],
    since: str,
    *options: str,
    timeout_s: float = 30.0,
) -> Finished:
    """Call sacct for jobs submitted since a date (YYYY-MM-DD); FIELD separates the fields.

    The query starts one day earlier: the date may be of another time zone, and Slurm's commands
    refuse a date in the future.
    """
    day = datetime.date.fromisoformat(since) - datetime.timedelta(days=1)
    return call_slurm(
        cluster,
        "sacct",
        "--allocations",
        "--noheader",
        "--parsable2",
        f"--delimiter={FIELD}",
        f"--starttime={day.isoformat()}",
        *options,
        *selection(jobs),
        timeout_s=timeout_s,
    )


def parse(text: str) -> tuple[QueueEntry, ...]:
    """Parse the output of sacct; a malformed line is skipped with a warning."""
    entries: dict[str, QueueEntry] = {}
    for line in text.split("\n"):
        fields = line.split(FIELD, 6)
        try:
            word, state, start, nodes, code, reason, name = fields
            jobs = job_ids(word)
        except ValueError:
            if line.strip():
                logging.getLogger(__name__).warning("unexpected line of sacct: %r", line)
            continue
        report = _report(state, reason, code, nodes, epoch(start))
        for job in jobs:
            # The record of pending elements, `9_[7,9]`, may list elements that have their own
            # record.
            if "[" not in word or job not in entries:
                entries[job] = QueueEntry(job=job, report=report, comment="", name=name)
    return tuple(entries.values())


def _report(word: str, reason: str, code: str, nodes: str, start: float | None) -> JobReport:
    state, text = job_state(word)
    if state is JobState.PENDING:
        text = sentence(reason) or text
    elif state is JobState.FAILED:
        # The reason is the one for which it was pending.
        text = _exit(code)
    if nodes == "None assigned":
        nodes, start = "", None
    return JobReport(state=state, reason=text, start=start, nodes=nodes)


def _exit(code: str) -> str:
    """Return the meaning of `7:0` or `0:9`, exit code and signal."""
    status, _, signal = code.partition(":")
    if signal == _NOT_STARTED:
        return "it could not be started, most often because its log cannot be written"
    if signal not in ("", "0"):
        return f"signal {signal}"
    return f"exit code {status}" if status not in ("", "0") else ""
