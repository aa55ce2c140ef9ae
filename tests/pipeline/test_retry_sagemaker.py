"""A retry on SageMaker resumes from the checkpoints of the earlier training job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.json_files import read_json
from hpc_train.model.run import Manifest, RunFolder
from hpc_train.model.submission import Submission
from hpc_train.pipeline.render import Request, prepare
from hpc_train.pipeline.retry import RetryOptions, retry
from hpc_train.pipeline.run_states import runs_below
from hpc_train.pipeline.submit import no_output, submit
from tests.pipeline.waiting import wait_for
from tests.servers.sagemaker import TrainingService, serving
from tests.submissions.sagemaker.jobs import JOB, profile

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
    line = f"{second.run_id} resumes from {kept}; hpctrain submit starts a job anew"
    assert line in said
    (third,) = retry(second.path, [], said.append, RetryOptions(settings=("env.A=1",))).new
    assert account.checkpoints(account.ended(third)) == kept
    assert read_json(third.manifest, Manifest).provenance["resumes_from"] == kept


def test_without_spare_capacity_a_retry_resumes_too(account: Account) -> None:
    first = account.submit()
    profile(account.folder)
    (second,) = retry(first.path, [], no_output).new
    assert account.checkpoints(account.ended(second)) == account.checkpoints(first)


def test_a_job_that_kept_none_starts_anew_and_says_so(
    account: Account, caplog: pytest.LogCaptureFixture
) -> None:
    profile(account.folder)
    first = account.submit()
    assert account.checkpoints(first) == ""
    assert "anew" not in caplog.text
    (second,) = retry(first.path, [], no_output).new
    assert account.checkpoints(second) == ""
    assert f"{second.run_id} starts anew: without sagemaker.spot, its earlier" in caplog.text


def test_a_run_of_a_study_is_measured_from_its_start(account: Account) -> None:
    (account.folder / "study.yaml").write_text(
        "name: s\njob: job.yaml\naxes: {nodes: [1]}\nscaling: strong\nrepetitions: 1\n"
    )
    first = account.submit("study.yaml")
    (second,) = retry(first.path.parent, [], no_output).new
    assert account.checkpoints(second) not in ("", account.checkpoints(first))
