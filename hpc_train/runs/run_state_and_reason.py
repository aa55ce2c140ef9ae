"""A run's files and the answer of its executor -> its state, and a message."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

import msgspec

from hpc_train.base.files import is_full, is_there, read_regular
from hpc_train.jobs.job import RESUBMIT
from hpc_train.runs.job_state import current, decide, has_ended
from hpc_train.runs.restart_table import signal_of
from hpc_train.runs.run import Failure, JobStatus, Run
from hpc_train.runs.run_folders import RunFiles
from hpc_train.runs.submission import JobReport, JobState, Submission

_SENTENCES = {
    JobState.LOST: "it was started or queued, and no process of it is left",
    JobState.CANCELLED: "cancelled, not by hpctrain",
    JobState.TIMEOUT: "the time limit was reached",
    JobState.FAILED: "it ended before its script wrote any file",
}


def run_of(files: RunFiles, report: JobReport | None) -> Run:
    """Combine a run's files with the answer of its executor; None means no answer."""
    status = current(files.status, report)
    earlier = earlier_start(files.status, report)
    plan = files.manifest.plan if files.manifest else None
    limit = plan.time_s if plan and plan.nested else None
    state = decide(report, files.status, files.submission, limit)
    return Run(
        folder=files.folder,
        manifest=files.manifest,
        submission=files.submission,
        status=files.status,
        state=state,
        problem=files.problem
        or _not_shared(state, files)
        or _no_space(state, files)
        or _problem(state, files.submission, status, report),
        job_report=with_earlier_start(report, earlier),
        earlier=earlier,
        starts=files.starts,
        newer=files.newer,
    )


def _not_shared(state: JobState, files: RunFiles) -> str:
    """Detect that Slurm could not open the log of a job, which it reports nowhere."""
    silent = files.status is None and not files.logged
    if state is not JobState.FAILED or files.submission is None or not silent:
        return ""
    return (
        f"{files.folder.logs} contains no output of the run; the results must be on a file system "
        "that all nodes share (--results DIR)"
    )


def _no_space(state: JobState, files: RunFiles) -> str:
    """Detect that the script could not write its end: the temporary file is left, and not whole.

    Without any file, the disk may still be full.
    """
    if not state.finished or state is JobState.COMPLETED or has_ended(files.status):
        return ""
    fresh = files.folder.status.with_name(f"{files.folder.status.name}.new")
    with suppress(OSError):
        if not read_regular(fresh).endswith(b"\n"):
            return (
                f"its end could not be written to {files.folder.path}: the disk was full, or the "
                "quota used up; free some space before hpctrain retry"
            )
    if state is JobState.LOST and is_full(files.folder.path):
        return f"{files.folder.path} is on a full disk, so it may not have been able to start"
    return ""


def _problem(
    state: JobState,
    submission: Submission | None,
    status: JobStatus | None,
    report: JobReport | None,
) -> str:
    if state.active or state is JobState.COMPLETED:
        return ""
    if state is JobState.FAILED and status is not None and status.failure is not None:
        return _bad_nodes(status) or _first_failure(status.failure)
    if submission is None:
        return _without_submission(status)
    if submission.state is state and submission.reason:
        return submission.reason
    if report is not None and report.reason:
        return report.reason
    return _without_reason(state, status)


def _without_submission(status: JobStatus | None) -> str:
    if status is None:
        return "it was never submitted"
    job = f"job {status.job}" if status.job else f"process {status.pid}"
    return f"submission.json is missing; status.json says {job} on {status.host}"


def never_submitted(run: Run) -> bool:
    """Whether a submission was killed before it called an executor, so that nothing can be running.

    A run that has started, or whose submission.json is damaged, may be running; so may one of a
    newer version, whose files are not read.
    """
    unknown = run.state is JobState.UNKNOWN and run.status is None and not run.newer
    return unknown and not (is_there(run.folder.submission) or is_there(run.folder.status))


def is_untouched(run: Run) -> bool:
    """Whether a submission was killed after creating the folder and before calling the executor.

    The folder is complete and unused, so it can be submitted unchanged.
    """
    whole = run.manifest is not None and never_submitted(run)
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
    lost = ", after it lost another rank" if failure.lost_peer else ""
    asked = ", which asks for another start" if failure.exit_code == RESUBMIT else ""
    return f"{rank} on {failure.host}: exit code {failure.exit_code}{asked}{lost}"


# status.json of a job that waits again -> what ended its earlier start.
#
# Slurm's queue gives such a job the reason BeginTime, as if its user had requested a later start.
# Only the accounting knows more, and not every cluster has one.


def earlier_start(status: JobStatus | None, report: JobReport | None) -> JobStatus | None:
    """Return status.json if it is that of a start before the job was requeued."""
    return status if current(status, report) is None else None


def with_earlier_start(report: JobReport | None, earlier: JobStatus | None) -> JobReport | None:
    """Add to the reason of a waiting job what ended its earlier start, unless it is known."""
    if report is None or earlier is None or report.history or report.state is not JobState.PENDING:
        return report
    reason = "; ".join(filter(None, (_end_of(earlier), report.reason)))
    return msgspec.structs.replace(report, reason=reason, history=True)


def _end_of(earlier: JobStatus) -> str:
    nodes = earlier.nodes or earlier.host
    where = f"it ran on {nodes}" if nodes else "it ran"
    if earlier.ended is None or earlier.exit_code is None:
        return (
            f"{where} from {_clock(earlier.started)} and recorded no end: its node was lost, or "
            "its script was killed before it could"
        )
    if earlier.failure is not None and earlier.failure.exit_code == RESUBMIT:
        asked = "its ranks saved a checkpoint and asked to be queued again"
        return f"{where} until {_clock(earlier.ended)}, when {asked}"
    until = f"{where} until {_clock(earlier.ended)}, when its script ended"
    return f"{until} with exit code {earlier.exit_code}{signal_of(earlier.exit_code)}"


def _clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")
