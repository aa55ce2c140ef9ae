"""What AWS bills, and which jobs it is asked for."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from hpc_train.model.run import RunFolder
from hpc_train.model.submission import JobState, Submission
from hpc_train.submissions.sagemaker import job_reports
from hpc_train.submissions.sagemaker.job_reports import bill_of

pytest.importorskip("botocore")


def described(billable: int, training: int) -> dict[str, Any]:
    return {
        "TrainingJobName": "hpct-a",
        "BillableTimeInSeconds": billable,
        "TrainingTimeInSeconds": training,
        "ResourceConfig": {"InstanceType": "ml.g5.12xlarge", "InstanceCount": 3},
    }


def test_billed_hours_are_those_of_all_instances() -> None:
    bill = bill_of(described(1800, 2400))
    assert bill is not None
    assert (bill.instance_hours, bill.saved) == (1.5, 0.25)


def test_nothing_is_saved_where_more_is_billed_than_was_trained() -> None:
    bill = bill_of(described(2400, 1800))
    assert bill is not None
    assert bill.saved == 0.0
    assert bill_of({"TrainingJobName": "hpct-a"}) is None


def test_a_job_is_listed_from_five_minutes_before_its_submission(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The clock of AWS may be behind, and the submission is written before the request."""
    asked: list[dict[str, Any]] = []

    class Service:
        def list_training_jobs(self, **request: Any) -> dict[str, Any]:
            asked.append(request)
            return {"TrainingJobSummaries": []}

    monkeypatch.setattr(job_reports, "client", lambda *_, **__: Service())
    run = RunFolder(path=tmp_path)
    submission = Submission(
        executor="sagemaker",
        native_id="eu-west-1/hpct-a",
        submitted="2026-01-02T03:04:05+00:00",
    )
    report = job_reports.job_reports("eu-west-1", {run: submission})[run]
    since = datetime.datetime(2026, 1, 2, 2, 59, 5, tzinfo=datetime.timezone.utc)
    assert [request["CreationTimeAfter"] for request in asked] == [since]
    assert report.state is JobState.LOST
