"""Runs -> states in Slurm, by job id or by the job's comment; else only from the run's files."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping

import msgspec

from hpc_train.job_state import job_state
from hpc_train.model.run import RunFolder
from hpc_train.model.submission import JobReport, JobState, SlurmEndpoint, Submission
from hpc_train.submissions.slurm.reason_codes import sentence
from hpc_train.submissions.slurm.sacct import call_sacct, sacct
from hpc_train.submissions.slurm.slurm_commands import transient, unanswered
from hpc_train.submissions.slurm.squeue import FIELD, QueueAnswer, QueueEntry, job_ids, squeue
from hpc_train.submissions.submission_file import owner, status_of

# Prefix of the comment that identifies a job.
MARK = "hpctrain:"


def job_reports(
    cluster: SlurmEndpoint, jobs: Mapping[str, str], since: str
) -> dict[str, JobReport]:
    """Return the states of jobs (id -> comment), with one squeue and, for the rest, one sacct.

    One further sacct asks for the history of jobs that may have been requeued.
    squeue keeps a job for MinJobAge (300 s by default) after its end. A job that neither lists is
    LOST, unless its own files have more information. `since` is the date (YYYY-MM-DD) of the oldest
    job.
    """
    answer = squeue(cluster, jobs)
    if answer.failure:
        return dict.fromkeys(jobs, no_answer(answer.failure))
    found = with_history(cluster, _listed(answer.entries, jobs), since)
    forgotten = [job for job in jobs if job not in found]
    rest = JobReport(state=JobState.LOST, reason="Slurm no longer knows it, and it recorded no end")
    if forgotten:
        past = sacct(cluster, forgotten, since)
        found.update({entry.job: _past(entry.report, entry.job) for entry in past.entries})
        if transient(past.failure):
            rest = no_answer(past.failure)
    return {job: found.get(job, rest) for job in jobs}


def _listed(entries: Collection[QueueEntry], jobs: Mapping[str, str]) -> dict[str, JobReport]:
    """Return the state of each job that is listed, by itself or as part of an array."""
    by_id = {entry.job: entry for entry in entries}
    found = {}
    for job, comment in jobs.items():
        entry = by_id.get(job) or by_id.get(job.partition("_")[0])
        if entry is not None and _is_same(entry.comment, comment):
            found[job] = _named(entry.report, job)
    return found


def _is_same(comment: str, expected: str) -> bool:
    """Whether a job belongs to the run: ids start again at 1 after a new installation of Slurm.

    A site may remove or change comments, so only another comment of hpctrain shows a different job.
    """
    return not expected or comment == expected or not comment.startswith(MARK)


def no_answer(failure: str) -> JobReport:
    """Return the state of every job if Slurm does not answer."""
    return JobReport(state=JobState.UNKNOWN, reason=f"Slurm does not answer: {failure}")


def _named(report: JobReport, job: str) -> JobReport:
    return msgspec.structs.replace(report, job=job)


def _past(report: JobReport, job: str) -> JobReport:
    """Use only final states of the accounting: it reports lost jobs as running."""
    if report.state.finished:
        return _named(report, job)
    reason = f"it is {report.state.value} in the accounting, but not in the queue"
    return JobReport(state=JobState.UNKNOWN, reason=reason, job=job)


# sbatch may still be running: it retries for a while if the controller is slow.
WITHIN_S = 120.0


def find(cluster: SlurmEndpoint, comment: str, user: str) -> tuple[tuple[str, ...], str]:
    """Return the jobs with a comment, the oldest first, and the error if Slurm did not respond."""
    answer = squeue(cluster, (), user)
    jobs = {entry.job.partition("_")[0] for entry in answer.entries if entry.comment == comment}
    return tuple(sorted(jobs, key=int)), answer.failure


def search(
    cluster: SlurmEndpoint, runs: Mapping[RunFolder, Submission]
) -> dict[RunFolder, JobReport]:
    """Return the states of runs without a recorded job id; `job` has the id if it was found."""
    found: dict[RunFolder, JobReport] = {}
    answers: dict[str, QueueAnswer] = {}
    for run, submission in runs.items():
        user = owner(run.path)
        answer = answers.get(user) or squeue(cluster, (), user)
        answers[user] = answer
        mine = [entry for entry in answer.entries if _is_job_of(entry, submission)]
        # The request was accepted twice: the older job is used everywhere.
        entry = min(mine, key=lambda one: int(one.job.partition("_")[0]), default=None)
        if entry is not None:
            found[run] = msgspec.structs.replace(entry.report, job=entry.job)
        else:
            found[run] = _without_entry(run, cluster, submission, answer.failure)
    return found


def _is_job_of(entry: QueueEntry, submission: Submission) -> bool:
    if entry.comment != submission.comment:
        return False
    return entry.job.endswith(submission.native_id)


def _without_entry(
    run: RunFolder, cluster: SlurmEndpoint, submission: Submission, failure: str
) -> JobReport:
    """Return the state of a run whose job was not found: recorded by itself, pending or lost."""
    status = status_of(run)
    if status is not None and status.job:
        job = status.job
        since = submission.submitted[:10]
        report = job_reports(cluster, {job: submission.comment}, since)[job]
        return msgspec.structs.replace(report, job=job)
    if failure:
        return no_answer(failure)
    submitted = datetime.datetime.fromisoformat(submission.submitted)
    age_s = (datetime.datetime.now(datetime.timezone.utc) - submitted).total_seconds()
    if age_s < WITHIN_S:
        reason = f"sbatch was called {age_s:.0f} s ago and has not printed a job id"
        reason += f"; without a job it is lost in {WITHIN_S - age_s:.0f} s"
        return JobReport(state=JobState.UNKNOWN, reason=reason)
    return JobReport(state=JobState.LOST, reason="Slurm never received it: sbatch was not answered")


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
