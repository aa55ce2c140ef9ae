"""The two statuses of a training job -> JobState and a sentence."""

from __future__ import annotations

from typing import Any

from hpc_train.model.submission import JobState

_WAITS = {
    "Starting": "it waits for instances",
    "Pending": "it waits for capacity",
    "LaunchingMLInstances": "instances are started",
    "PreparingTrainingStack": "instances are prepared",
    "Downloading": "data are downloaded",
    "DownloadingTrainingImage": "the image is downloaded",
    "Interrupted": "spare capacity was taken away",
    "Restarting": "it starts again, after spare capacity was taken away",
}
_RUNS = ("Training", "Uploading", "Updating")
_LIMITS = {
    "MaxRuntimeExceeded": "the time limit was reached",
    "MaxWaitTimeExceeded": "sagemaker.max_wait was reached",
}
# Failures of AWS, not of the program: another attempt may succeed.
_OF_AWS = ("CapacityError", "InternalServerError", "Internal server error", "InternalServiceError")


def state_of(job: dict[str, Any]) -> tuple[JobState, str]:
    """Return state and reason for a job as ListTrainingJobs or DescribeTrainingJob describe it.

    An unknown word is not final.
    """
    status, secondary = job.get("TrainingJobStatus", ""), job.get("SecondaryStatus", "")
    if status == "InProgress":
        return _active(secondary)
    if status == "Completed":
        return JobState.COMPLETED, ""
    if status == "Failed":
        return _failed(secondary, " ".join(str(job.get("FailureReason", "")).split()))
    if status == "Stopped" and secondary in _LIMITS:
        return JobState.TIMEOUT, _LIMITS[secondary]
    if status in ("Stopping", "Stopped"):
        return JobState.CANCELLED, "stopped, not by hpctrain"
    return JobState.UNKNOWN, f"unknown status of SageMaker: {status} / {secondary}"


def _active(secondary: str) -> tuple[JobState, str]:
    if secondary in _RUNS:
        return JobState.RUNNING, ""
    if secondary in _WAITS:
        return JobState.PENDING, _WAITS[secondary]
    if secondary in ("Stopping", *_LIMITS):
        return JobState.RUNNING, "it is ending"
    return JobState.UNKNOWN, f"unknown status of SageMaker: InProgress / {secondary}"


def _failed(secondary: str, reason: str) -> tuple[JobState, str]:
    if secondary in _LIMITS:
        return JobState.TIMEOUT, _LIMITS[secondary]
    if reason.startswith(_OF_AWS):
        return JobState.NODE_FAIL, f"{reason}; hpctrain retry submits it again"
    return JobState.FAILED, reason or "SageMaker gives no reason"
