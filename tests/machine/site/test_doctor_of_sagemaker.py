"""`doctor` with unmodified boto3 and the account of the lab; `site init` without a scheduler."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from hpc_train.cli.group import cli
from tests.servers.sagemaker import PROFILE, TrainingService, serving

pytest.importorskip("boto3")


@pytest.fixture
def account(
    profiles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TrainingService]:
    """Return an account with a bucket, two roles and quotas."""
    with serving(tmp_path / "aws", monkeypatch) as service:
        yield service


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    return done.exit_code, done.output


@pytest.mark.process
def test_doctor_examines_shell_and_profile(
    account: TrainingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("mine.yaml").write_text(PROFILE.replace("name: sagemaker", "name: mine"))
    monkeypatch.setenv("HPCTRAIN_SITE", "mine")
    code, output = run("doctor", "--json")
    assert code in (0, 1)
    found = json.loads(output)["sagemaker"]
    assert found.pop("boto3")
    assert found == {
        "region": "eu-west-1",
        "credentials": "env",
        "account": "123456789012",
    }
