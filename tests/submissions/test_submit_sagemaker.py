"""Submissions to SageMaker: code is uploaded once, and an answer that is lost loses no job."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hpc_train.base.errors import SubmitError
from hpc_train.runs.json_files import read_json, write_submission
from hpc_train.runs.run import JobState, Manifest, RunFolder, Submission
from hpc_train.runs.run_states import runs_below
from hpc_train.sagemaker import aws_client
from hpc_train.sagemaker.submit_jobs import SageMakerExecutor
from hpc_train.scripts.prepare import Request, prepare
from hpc_train.submissions.retry import retry
from hpc_train.submissions.submit import no_output, submit
from tests.sagemaker.jobs import JOB, profile
from tests.servers.sagemaker import TrainingService, serving
from tests.submissions.waiting import wait_for

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


def test_a_job_is_found_by_a_clock_that_is_ahead(account: Account, tmp_path: Path) -> None:
    run = account.submit()
    submission = read_json(run.submission, Submission)
    ahead = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=100)
    changed = msgspec.structs.replace(submission, state=None, submitted=ahead.isoformat())
    write_submission(run, changed)
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


pytest.importorskip("boto3")
SPOT = ("  bucket", "  spot: true\n  bucket")


class Account:
    """A service whose jobs all fail for lack of capacity, and a folder with a job."""

    def __init__(self, folder: Path, service: TrainingService) -> None:
        self.folder, self.service = folder, service
        (folder / "train.py").touch()
        (folder / "job.yaml").write_text(JOB)
        profile(folder, SPOT)

    def submit(self, file: str = "job.yaml") -> RunFolder:
        request = Request(path=self.folder / file, site=str(self.folder / "aws.yaml"))
        return self.ended(submit(prepare(request), self.folder / "results", []).new[0])

    def ended(self, run: RunFolder) -> RunFolder:
        wait_for(lambda: all(one.state.finished for one in runs_below(run.path)))
        return run

    def checkpoints(self, run: RunFolder) -> str:
        """Return the folder of checkpoints that AWS was asked for."""
        name = read_json(run.submission, Submission).native_id.partition("/")[2]
        return str((self.service.jobs[name].request.checkpoint_config or {}).get("S3Uri", ""))


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    with serving(tmp_path / "aws", monkeypatch) as service:
        service.faults["capacity"] = 99
        yield Account(work, service)


def test_each_retry_has_the_checkpoints_of_the_first_job(account: Account) -> None:
    first = account.submit()
    kept = account.checkpoints(first)
    assert kept.startswith("s3://my-bucket/hpctrain/hpct-resnet-50-a-")
    said: list[str] = []
    (second,) = retry(first.path, [], said.append).new
    assert account.checkpoints(account.ended(second)) == kept
    line = f"{second.run_id} resumes from {kept}; hpctrain submit starts a job from step 0"
    assert line in said
    (third,) = retry(second.path, [], said.append, settings=("env.A=1",)).new
    assert account.checkpoints(account.ended(third)) == kept
    assert read_json(third.manifest, Manifest).provenance["resumes_from"] == kept


def test_a_run_of_a_study_is_measured_from_its_start(account: Account) -> None:
    (account.folder / "study.yaml").write_text(
        "name: s\njob: job.yaml\naxes: {nodes: [1]}\nscaling: strong\nrepetitions: 1\n"
    )
    first = account.submit("study.yaml")
    (second,) = retry(first.path.parent, [], no_output).new
    assert account.checkpoints(second) not in ("", account.checkpoints(first))
