"""status.json from the ends that hosts printed, or from SageMaker's where one printed none."""

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpc_train.runs.run import JobState, JobStatus, RunFolder
from hpc_train.sagemaker.job_reports import state_of, write_status

STARTED, ENDED = 1000.0, 1100.0
LATER = ENDED + 3600


def description(status: str = "Completed", hosts: int = 2, **more: Any) -> dict[str, Any]:
    return {
        "TrainingJobName": "hpct-a",
        "TrainingJobStatus": status,
        "TrainingStartTime": datetime.fromtimestamp(STARTED, timezone.utc),
        "TrainingEndTime": datetime.fromtimestamp(ENDED, timezone.utc),
        "LastModifiedTime": datetime.fromtimestamp(ENDED, timezone.utc),
        "ResourceConfig": {"InstanceCount": hosts},
        **more,
    }


def end(host: int, code: int = 0, rank: int | None = None, at: float = ENDED) -> str:
    """Return the line that a host prints at its end."""
    failure = None
    if rank is not None:
        failure = {"rank": rank, "host": f"algo-{host}", "exit_code": code, "time": at}
    status = {
        "started": STARTED + host,
        "ended": ENDED + host,
        "exit_code": code,
        "host": f"algo-{host}",
        "job": "x",
        "failure": failure,
    }
    return f"hpctrain: status {json.dumps(status)}"


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    (tmp_path / "logs").mkdir()
    return RunFolder(path=tmp_path)


def status(run: RunFolder, job: dict[str, Any], *lines: str, now: float = LATER) -> JobStatus:
    (run.logs / "job.out").write_text("".join(f"{line}\n" for line in ("setup", *lines)))
    assert write_status(run, job, now)
    return msgspec.json.decode(run.status.read_bytes(), type=JobStatus)


def test_the_rank_that_failed_first_has_the_cause(run: RunFolder) -> None:
    lines = (end(1, 1, rank=0, at=50.0), end(2, 7, rank=1, at=49.0), end(3, 143))
    found = status(run, description("Failed", hosts=3), *lines)
    assert found.exit_code == 7
    assert found.failure is not None
    assert (found.failure.rank, found.failure.host) == (1, "algo-2")


def test_only_the_last_end_of_a_host_counts(run: RunFolder) -> None:
    found = status(run, description(), end(1, 143), end(1), end(2))
    assert found.exit_code == 0


def test_a_killed_host_has_the_end_of_sagemaker(run: RunFolder) -> None:
    found = status(run, description("Failed"), end(1))
    assert (found.exit_code, found.started, found.ended) == (1, STARTED, ENDED)


def test_a_line_that_is_cut_is_left_out(run: RunFolder) -> None:
    found = status(run, description(), end(1)[:-5], end(2)[:30])
    assert (found.exit_code, found.host) == (0, "")


def test_lines_may_still_arrive(run: RunFolder) -> None:
    (run.logs / "job.out").write_text(end(1) + "\n")
    assert not write_status(run, description(), ENDED + 5)
    assert not run.status.exists()


def test_a_job_that_did_not_start_has_no_status(run: RunFolder) -> None:
    job = description("Failed")
    del job["TrainingStartTime"]
    assert write_status(run, job, ENDED + 5)
    assert not run.status.exists()


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
        ("Stopping", "Stopping", "RUNNING", "it is ending"),
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
