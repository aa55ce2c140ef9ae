"""A run's files and the answer of its executor -> its state, and a message."""

from __future__ import annotations

from hpc_train.model.run import Failure, JobStatus, Manifest, Run
from hpc_train.model.submission import JobReport, JobState, Submission
from hpc_train.regularfile import is_there
from hpc_train.runs.store import RunFiles

# Largest difference between the clocks of a scheduler and of its nodes.
_CLOCKS_S = 5.0
# Messages that are less specific than an exit code.
_VAGUE = (JobState.COMPLETED, JobState.LOST)
_SENTENCES = {
    JobState.LOST: "it was started or queued, and no process of it is left",
    JobState.CANCELLED: "cancelled, not by hpctrain",
    JobState.TIMEOUT: "the time limit was reached",
    JobState.FAILED: "it ended before its script wrote any file",
}


def run_of(files: RunFiles, standing: JobReport | None) -> Run:
    """Combine a run's files with the answer of its executor; None means no answer.

    A scheduler that still has the job takes precedence, because a requeued job has the files of its
    earlier attempt; then a recorded final state; then the job's own files.
    """
    status = None if _stale(files.status, standing) else files.status
    state = _state(files.submission, status, standing)
    if state is JobState.FAILED and _out_of_time(files.manifest, status):
        state = JobState.TIMEOUT
    return Run(
        folder=files.folder,
        manifest=files.manifest,
        submission=files.submission,
        status=files.status,
        state=state,
        problem=files.problem
        or _not_shared(state, files)
        or _problem(state, files.submission, status, standing),
        standing=standing,
    )


def _stale(status: JobStatus | None, standing: JobReport | None) -> bool:
    """Whether status.json is that of an attempt before the job was requeued."""
    if status is None or standing is None or not standing.state.active:
        return False
    if standing.state is JobState.PENDING:
        return standing.asked is None or status.started <= standing.asked
    return standing.start is not None and status.started < standing.start - _CLOCKS_S


def _state(
    submission: Submission | None, status: JobStatus | None, standing: JobReport | None
) -> JobState:
    ended = status is not None and status.ended is not None
    if ended and status is not None and status.exit_code == 0:
        return JobState.COMPLETED
    if standing is not None and standing.state.active:
        # The job's file is newer than the scheduler's answer; otherwise it would be stale.
        waits = standing.state is JobState.PENDING
        return JobState.RUNNING if waits and status is not None else standing.state
    settled = submission.state if submission is not None else None
    said = settled or (standing.state if standing is not None else None)
    # A scheduler that does not respond may still have the job, so the job has not ended.
    if ended and (said is None or said in _VAGUE):
        return JobState.FAILED
    return JobState.UNKNOWN if submission is None or said is None else said


def _out_of_time(manifest: Manifest | None, status: JobStatus | None) -> bool:
    """Whether the run was ended at its own time limit, inside an allocation that continued."""
    limit = manifest.plan.time_s if manifest and manifest.plan.nested else None
    if limit is None or status is None or status.ended is None:
        return False
    # The limit counts from shortly before the script records its start.
    return status.exit_code != 0 and status.ended - status.started >= limit - 1


def _not_shared(state: JobState, files: RunFiles) -> str:
    """Detect that Slurm could not open the log of a job, which it reports nowhere."""
    silent = files.status is None and not files.logged
    if state is not JobState.FAILED or files.submission is None or not silent:
        return ""
    return (
        f"{files.folder.logs} contains no output of the run; the results must be on a file system "
        "that all nodes share (--results DIR)"
    )


def _problem(
    state: JobState,
    submission: Submission | None,
    status: JobStatus | None,
    standing: JobReport | None,
) -> str:
    if state.active or state is JobState.COMPLETED:
        return ""
    if state is JobState.FAILED and status is not None and status.failure is not None:
        return _bad_nodes(status) or _first_failure(status.failure)
    if submission is None:
        return _without_submission(status)
    if submission.state is state and submission.reason:
        return submission.reason
    if standing is not None and standing.reason:
        return standing.reason
    return _without_reason(state, status)


def _without_submission(status: JobStatus | None) -> str:
    if status is None:
        return "it was never submitted"
    job = f"job {status.job}" if status.job else f"process {status.pid}"
    return f"submission.json is missing; status.json says {job} on {status.host}"


def was_never_handed_over(run: Run) -> bool:
    """Whether a submission was killed before it called an executor, so that nothing can be running.

    A run that has started, or whose submission.json is damaged, may be running.
    """
    unknown = run.state is JobState.UNKNOWN and run.status is None
    return unknown and not (is_there(run.folder.submission) or is_there(run.folder.status))


def is_untouched(run: Run) -> bool:
    """Whether a submission was killed after creating the folder and before calling the executor.

    The folder is complete and unused, so it can be submitted unchanged.
    """
    whole = run.manifest is not None and was_never_handed_over(run)
    return whole and not any(run.folder.logs.glob("*"))


def _without_reason(state: JobState, status: JobStatus | None) -> str:
    if state is JobState.FAILED and status is not None and status.exit_code is not None:
        return f"exit code {status.exit_code} before any rank failed; see logs/job.out"
    return _SENTENCES.get(state, "")


def _bad_nodes(status: JobStatus) -> str:
    names = status.bad_nodes.replace(",", ", ")
    return f"preflight: checks failed on {names}" if names else ""


def _first_failure(failure: Failure) -> str:
    rank = "a rank" if failure.rank is None else f"rank {failure.rank}"
    return f"{rank} on {failure.host}: exit code {failure.exit_code}"
