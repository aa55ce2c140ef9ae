"""JobState from what the executor and the job itself say."""

from __future__ import annotations

from hpc_train.model.run import JobStatus, Run
from hpc_train.model.submission import JobState, Submission
from hpc_train.runs.store import RunFiles


def run_of(files: RunFiles, alive: bool | None) -> Run:
    """Combine a run's files with whether its executor still has it (None: cannot tell)."""
    state = _state(files.submission, files.status, alive)
    return Run(
        folder=files.folder,
        manifest=files.manifest,
        submission=files.submission,
        status=files.status,
        state=state,
        problem=files.problem or _problem(state, files.submission, files.status),
    )


def _state(submission: Submission | None, status: JobStatus | None, alive: bool | None) -> JobState:
    ended = status is not None and status.ended is not None
    if ended and status is not None and status.exit_code == 0:
        return JobState.COMPLETED
    if submission is not None and submission.state is not None:
        return submission.state
    if ended:
        return JobState.FAILED
    if submission is None or alive is None:
        return JobState.UNKNOWN
    if alive:
        return JobState.PENDING if status is None else JobState.RUNNING
    return JobState.LOST


def _problem(state: JobState, submission: Submission | None, status: JobStatus | None) -> str:
    if state is JobState.FAILED and status is not None and status.failure is not None:
        failure = status.failure
        rank = "a rank" if failure.rank is None else f"rank {failure.rank}"
        return f"{rank} on {failure.host}: exit code {failure.exit_code}"
    if state is JobState.FAILED and status is not None and status.exit_code is not None:
        return f"exit code {status.exit_code} before any rank failed; see logs/job.out"
    if state is JobState.LOST:
        return "it was started or queued, and nothing is left of it"
    if state is JobState.UNKNOWN and submission is None:
        return "it was never handed to an executor"
    return submission.reason if submission is not None and state is submission.state else ""
