"""Runs of a region -> their states, with one list of jobs; details only of jobs that have ended."""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping
from typing import Any

from hpc_train.errors import StoreError
from hpc_train.model.run import RunFolder
from hpc_train.model.submission import JobReport, JobState, Submission
from hpc_train.submissions.sagemaker.aws_client import client
from hpc_train.submissions.sagemaker.bill import write_bill
from hpc_train.submissions.sagemaker.host_status import write_status
from hpc_train.submissions.sagemaker.job_id import JobId
from hpc_train.submissions.sagemaker.job_words import state_of
from hpc_train.submissions.sagemaker.log_streams import fetch
from hpc_train.submissions.sagemaker.training_job import PREFIX

# The most that the service returns; ListTrainingJobs allows two calls a second.
_PAGE = 100
_MOST_PAGES = 100
# Clocks differ, and a request is recorded before it is sent.
_EARLIER = datetime.timedelta(minutes=5)
# boto3 may still be sending the request again.
_WITHIN_S = 300.0


def job_reports(region: str, runs: Mapping[RunFolder, Submission]) -> dict[RunFolder, JobReport]:
    """Return the states of runs; logs and status.json of those that ended are written.

    Raises:
        BotoCoreError, ClientError: AWS does not answer, or refuses.
    """
    names = {JobId.parse(submission.native_id).name for submission in runs.values()}
    since = min(datetime.datetime.fromisoformat(one.submitted) for one in runs.values())
    listed = _listed(client("sagemaker", region, states=True), names, since - _EARLIER)
    return {
        run: _report(JobId.parse(submission.native_id), run, submission, listed)
        for run, submission in runs.items()
    }


def _listed(service: Any, names: set[str], since: datetime.datetime) -> dict[str, dict[str, Any]]:
    """List jobs, the newest first, until all names were found."""
    only = next(iter(names)) if len(names) == 1 else PREFIX
    request = {
        "MaxResults": _PAGE,
        "NameContains": only,
        "CreationTimeAfter": since,
        "SortBy": "CreationTime",
        "SortOrder": "Descending",
    }
    found: dict[str, dict[str, Any]] = {}
    for _ in range(_MOST_PAGES):
        page = service.list_training_jobs(**request)
        jobs = page["TrainingJobSummaries"]
        found.update({job["TrainingJobName"]: job for job in jobs})
        if not page.get("NextToken") or names <= found.keys():
            break
        request["NextToken"] = page["NextToken"]
    return found


def _report(
    job: JobId, run: RunFolder, submission: Submission, listed: Mapping[str, dict[str, Any]]
) -> JobReport:
    found = listed.get(job.name)
    if found is None:
        return _not_listed(submission)
    if found["TrainingJobStatus"] == "Stopping":
        # AWS ends the job within two minutes; its last lines come after that.
        return JobReport(state=JobState.RUNNING, reason="it is being stopped", job=str(job))
    state, reason = state_of(found)
    if not state.finished:
        return JobReport(state=state, reason=reason, job=str(job))
    return _ended(job, run)


def _ended(job: JobId, run: RunFolder) -> JobReport:
    """Return the state of a job that has ended, after its logs and its end were written.

    Without `job`, the state is not recorded, and the next query asks again.
    """
    service = client("sagemaker", job.region, states=True)
    described: dict[str, Any] = service.describe_training_job(TrainingJobName=job.name)
    state, reason = state_of(described)
    try:
        fetch(client("logs", job.region, states=True), job.name, run)
        complete = write_status(run, described, time.time())
        write_bill(run, described)
    except (OSError, StoreError) as failure:
        # Another user may read, but not write; or the disk is full.
        message = f"its logs cannot be written: {getattr(failure, 'message', failure)}"
        return JobReport(state=state, reason="; ".join(filter(None, (reason, message))))
    return JobReport(state=state, reason=reason, job=str(job) if complete else "")


def _not_listed(submission: Submission) -> JobReport:
    submitted = datetime.datetime.fromisoformat(submission.submitted)
    age_s = (datetime.datetime.now(datetime.timezone.utc) - submitted).total_seconds()
    if age_s < _WITHIN_S:
        reason = f"it was submitted {age_s:.0f} s ago, and SageMaker does not list it yet"
        return JobReport(state=JobState.UNKNOWN, reason=reason)
    reason = "SageMaker has no job of this name: it never received it, or the job was deleted"
    return JobReport(state=JobState.LOST, reason=reason)
