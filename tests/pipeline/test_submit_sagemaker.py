"""Submissions to SageMaker: code is uploaded once, and an answer that is lost loses no job."""

from __future__ import annotations

import datetime
from pathlib import Path

import msgspec
import pytest

from hpc_train.errors import HpcTrainError, SubmitError
from hpc_train.json_files import read_json
from hpc_train.model.submission import JobState, Submission
from hpc_train.pipeline.render import Request, prepare
from hpc_train.pipeline.run_states import runs_below
from hpc_train.pipeline.submit import submit
from hpc_train.submissions.sagemaker import aws_client
from hpc_train.submissions.sagemaker.executor import SageMakerExecutor
from hpc_train.submissions.submission_file import write
from tests.pipeline.test_retry_sagemaker import Account, account

pytest.importorskip("boto3")
__all__ = ["account"]


def test_the_code_of_several_runs_is_uploaded_once(account: Account) -> None:
    (account.folder / "study.yaml").write_text(
        "name: s\njob: job.yaml\naxes: {nodes: [1, 2]}\nscaling: strong\nrepetitions: 2\n"
    )
    account.submit("study.yaml")
    uploads = [call for call in account.service.calls if call.startswith("/my-bucket/")]
    assert len([call for call in uploads if "/code/" in call]) == 1
    assert len([call for call in uploads if call.endswith("/job.sh")]) == 4


def test_a_request_without_an_answer_may_have_been_accepted(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER", "http://127.0.0.1:1")
    monkeypatch.setattr(aws_client, "_ATTEMPTS", 1)
    request = Request(path=account.folder / "job.yaml", site=str(account.folder / "aws.yaml"))
    results = account.folder / "results"
    with pytest.raises(SubmitError, match="AWS does not answer") as failure:
        submit(prepare(request), results, [])
    assert failure.value.transient
    monkeypatch.delenv("AWS_ENDPOINT_URL_SAGEMAKER")
    (run,) = runs_below(next(path for path in results.iterdir() if path.is_dir()))
    # Its name is kept, so that it is found if AWS created it.
    assert run.submission is not None and "/hpct-resnet" in run.submission.native_id
    assert run.state is JobState.UNKNOWN
    assert run.problem.endswith("s ago, and SageMaker does not list it yet")


def test_a_name_that_is_taken_by_a_job_that_nobody_may_see_is_a_refusal(account: Account) -> None:
    account.service.refused["CreateTrainingJob"] = (1, "ResourceInUse", "the name is taken")
    request = Request(path=account.folder / "job.yaml", site=str(account.folder / "aws.yaml"))
    with pytest.raises(HpcTrainError, match="AWS refuses it: .*not.*find"):
        submit(prepare(request), account.folder / "results", [])


def test_a_job_is_found_by_a_clock_that_is_ahead(account: Account, tmp_path: Path) -> None:
    run = account.submit()
    submission = read_json(run.submission, Submission)
    ahead = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=100)
    changed = msgspec.structs.replace(submission, state=None, submitted=ahead.isoformat())
    write(run, changed)
    (report,) = SageMakerExecutor().query({run: changed}).values()
    assert report.state is JobState.NODE_FAIL


def test_an_end_whose_last_lines_may_still_come_is_not_recorded(account: Account) -> None:
    run = account.submit()
    submission = msgspec.structs.replace(read_json(run.submission, Submission), state=None)
    job = account.service.jobs[submission.native_id.partition("/")[2]]
    for ago_s, recorded in ((0.0, ""), (100.0, submission.native_id)):
        then = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=ago_s)
        job.request.training_start_time = job.request.training_end_time = then
        (report,) = SageMakerExecutor().query({run: submission}).values()
        assert (report.state, report.job) == (JobState.NODE_FAIL, recorded)
        assert run.status.exists() == bool(recorded)


def test_a_job_that_ended_before_it_was_stopped_keeps_its_state(account: Account) -> None:
    run = account.submit()
    submission = read_json(run.submission, Submission)
    SageMakerExecutor().cancel(run.path.parent, {run: submission})
    assert read_json(run.submission, Submission).state is JobState.NODE_FAIL
