from __future__ import annotations

import pytest

from hpc_train.model.submission import JobState
from hpc_train.submissions.sagemaker.job_reports import state_of


@pytest.mark.parametrize(
    ("status", "secondary", "state", "reason"),
    [
        ("InProgress", "Starting", "PENDING", "waits for instances"),
        ("InProgress", "Pending", "PENDING", "waits for capacity"),
        ("InProgress", "Downloading", "PENDING", "data are downloaded"),
        ("InProgress", "Training", "RUNNING", ""),
        ("InProgress", "Uploading", "RUNNING", ""),
        ("InProgress", "Interrupted", "PENDING", "spare capacity was taken away"),
        ("InProgress", "Restarting", "PENDING", "starts again"),
        ("InProgress", "Dreaming", "UNKNOWN", "InProgress / Dreaming"),
        ("Completed", "Completed", "COMPLETED", ""),
        ("Stopped", "MaxRuntimeExceeded", "TIMEOUT", "time limit"),
        ("Stopped", "MaxWaitTimeExceeded", "TIMEOUT", "max_wait"),
        ("Stopped", "Stopped", "CANCELLED", "not by hpctrain"),
        ("Stopping", "Stopping", "CANCELLED", "not by hpctrain"),
        ("Deleting", "", "UNKNOWN", "Deleting"),
    ],
)
def test_states(status: str, secondary: str, state: str, reason: str) -> None:
    found, why = state_of({"TrainingJobStatus": status, "SecondaryStatus": secondary})
    assert found is JobState(state)
    assert reason in why


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        ("CapacityError: Unable to provision requested ML compute capacity.", "NODE_FAIL"),
        ("InternalServerError: We encountered an internal error.", "NODE_FAIL"),
        ("AlgorithmError: rank 1 on algo-2: exit code 3, exit code: 3", "FAILED"),
        ("AlgorithmError: CapacityError in my program, exit code: 1", "FAILED"),
        ("", "FAILED"),
    ],
)
def test_a_failure_of_aws_is_worth_a_retry(reason: str, state: str) -> None:
    job = {"TrainingJobStatus": "Failed", "SecondaryStatus": "Failed", "FailureReason": reason}
    found, why = state_of(job)
    assert found is JobState(state)
    assert why.startswith(reason)
    assert ("hpctrain retry" in why) == (state == "NODE_FAIL")
