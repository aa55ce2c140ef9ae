"""Requeued jobs -> what ended their previous attempt, with one sacct call."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from hpc_train.job_state import job_state
from hpc_train.model.submission import JobReport, JobState, SlurmEndpoint
from hpc_train.submissions.slurm.reason_codes import sentence
from hpc_train.submissions.slurm.sacct import call_sacct
from hpc_train.submissions.slurm.slurm_commands import unanswered
from hpc_train.submissions.slurm.squeue import FIELD, job_ids

_FIELDS = "JobID,State,End,NodeList"
_REQUEUED = {"REQUEUED": "it was requeued"}


def with_history(
    cluster: SlurmEndpoint, found: Mapping[str, JobReport], since: str
) -> dict[str, JobReport]:
    """Add to the reason of each requeued job what ended its previous attempt.

    squeue gives such a job the reason BeginTime, as if its user had requested a later start. The
    accounting keeps a record of each attempt (man sacct, --duplicates); without accounting
    `runs.earlier_start` reads the end from the files of the run. `since` is the date (YYYY-MM-DD)
    of the oldest job.
    """
    waiting = [job for job, report in found.items() if _may_be_requeued(report)]
    ended = _previous_attempts(cluster, waiting, since) if waiting else {}
    return {
        job: msgspec.structs.replace(report, reason=f"{ended[job]}; {report.reason}", history=True)
        if job in ended
        else report
        for job, report in found.items()
    }


def _may_be_requeued(report: JobReport) -> bool:
    return report.state is JobState.PENDING and report.reason == sentence("BeginTime")


def _previous_attempts(cluster: SlurmEndpoint, jobs: Collection[str], since: str) -> dict[str, str]:
    """Return job -> a sentence on the end of its last attempt."""
    done = call_sacct(cluster, jobs, since, "--duplicates", f"--format={_FIELDS}")
    return {} if unanswered(done) else _ends(done.stdout)


def _ends(text: str) -> dict[str, str]:
    """Parse the output of sacct; the last record of a job that has a node is its last attempt."""
    ends: dict[str, tuple[str, str]] = {}
    for line in text.split("\n"):
        try:
            word, state, end, nodes = line.split(FIELD)
            jobs = job_ids(word)
        except ValueError:
            continue
        kind = state.partition(" ")[0]
        meaning = _REQUEUED.get(kind) or job_state(state)[1] or f"it ended as {kind}"
        if end[:1].isdigit() and nodes != "None assigned":
            for job in jobs:
                latest = (end, f"it ran on {nodes} until {end.replace('T', ' ')}, when {meaning}")
                ends[job] = max(ends.get(job, latest), latest)
    return {job: why for job, (_, why) in ends.items()}
