"""What keeps training jobs from starting is said before one is submitted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.base.errors import SiteProfileError, SubmitError
from hpc_train.runs.executor import ExecutorOptions
from hpc_train.runs.run import JobState, RunFolder, Submission
from hpc_train.sagemaker import aws_client
from hpc_train.sagemaker.aws_client import check_account, check_owner, uses_aws
from hpc_train.sagemaker.submit_jobs import SageMakerExecutor
from tests.sagemaker.jobs import site
from tests.servers.sagemaker import serving

pytest.importorskip("boto3")


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with serving(tmp_path / "aws", monkeypatch):
        yield tmp_path


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("role/training", "role/lab"), ""),
        (("::123", "::923"), "aws.yaml:7: sagemaker.role is one of the account 923456789012"),
    ],
)
def test_the_account_of_a_profile(account: Path, change: tuple[str, str], problem: str) -> None:
    found = check_account(site(account, change))
    assert dict(found.rows)["account"] == "123456789012"
    if not problem:
        assert found.problem is None
        return
    assert found.problem is not None and found.problem.severity == "error"
    assert problem in found.problem.message
    assert found.problem.advice


def test_the_role_of_another_account_is_refused_before_a_submission(account: Path) -> None:
    executor = SageMakerExecutor()
    own = ExecutorOptions(site=site(account))
    assert executor.ready(account, [], own) is own
    other = ExecutorOptions(site=site(account, ("::123", "::923")))
    with pytest.raises(SiteProfileError, match="passes no role on to another"):
        executor.ready(account, [], other)
    without = ExecutorOptions(site=own.site, exclude=("algo-1",))
    with pytest.raises(SubmitError, match="AWS chooses the hosts of a job; algo-1 cannot be left"):
        executor.ready(account, [], without)


def test_a_network_without_sts_is_no_reason_to_refuse(
    account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    check_owner(site(account, ("::123", "::923")))


def test_a_state_that_is_not_known_has_the_reason(
    account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission = Submission(
        executor="sagemaker", native_id="eu-west-1/hpct-x", submitted="2026-11-01T10:00:00+00:00"
    )
    runs = {RunFolder(path=account / "x"): submission}
    monkeypatch.setattr(aws_client, "_ATTEMPTS", 1)
    for name, value, reason in (
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1", "AWS does not answer: Could not connect"),
        ("AWS_PROFILE", "nothing", "the configuration of AWS in this shell: The config profile"),
    ):
        monkeypatch.setenv(name, value)
        (report,) = SageMakerExecutor().query(runs).values()
        assert report.state is JobState.UNKNOWN
        assert report.reason.startswith(reason)


def test_a_shell_without_aws_is_not_examined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert not uses_aws()
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").touch()
    assert uses_aws()
