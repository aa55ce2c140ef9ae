"""What keeps training jobs from starting is said before one is submitted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.base.errors import SiteProfileError, SubmitError
from hpc_train.runs.executor import ExecutorOptions
from hpc_train.sagemaker.aws_client import check_owner
from hpc_train.sagemaker.submit_jobs import SageMakerExecutor
from tests.sagemaker.jobs import site
from tests.servers.sagemaker import serving

pytest.importorskip("boto3")


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with serving(tmp_path / "aws", monkeypatch):
        yield tmp_path


def test_the_role_of_another_account_is_refused_before_a_submission(account: Path) -> None:
    executor = SageMakerExecutor()
    own = ExecutorOptions(site=site(account))
    assert executor.ready(account, [], own) is own
    other = ExecutorOptions(site=site(account, ("::123", "::923")))
    with pytest.raises(SiteProfileError, match="AWS refuses that role"):
        executor.ready(account, [], other)
    without = ExecutorOptions(site=own.site, exclude=("algo-1",))
    with pytest.raises(SubmitError, match="AWS chooses the hosts of a job; algo-1 cannot be left"):
        executor.ready(account, [], without)


def test_a_network_without_sts_is_no_reason_to_refuse(
    account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    check_owner(site(account, ("::123", "::923")))
