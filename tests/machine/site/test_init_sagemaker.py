"""`site init --sagemaker` and `doctor`, with unmodified boto3 and the account of the lab."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from hpc_train.base.errors import HpcTrainError
from hpc_train.cli.group import cli
from hpc_train.sites.load import load_site
from tests.servers.sagemaker import REGION, TrainingService, serving

pytest.importorskip("boto3")
OWN = "sagemaker-eu-west-1-123456789012"


@pytest.fixture
def account(
    profiles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TrainingService]:
    """Return an account with a bucket, two roles and quotas."""
    with serving(tmp_path / "aws", monkeypatch) as service:
        yield service


def make_bucket(service: TrainingService, name: str) -> None:
    place = {"LocationConstraint": REGION}
    service.client("s3").create_bucket(Bucket=name, CreateBucketConfiguration=place)


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    return done.exit_code, done.output


def init(*words: str) -> str:
    code, output = run("site", "init", "--sagemaker", *words)
    assert code == 0, output
    return output


def test_the_draft_has_what_the_account_says(account: TrainingService) -> None:
    make_bucket(account, OWN)
    make_bucket(account, "another")
    assert "site_profiles/aws-eu-west-1.yaml" in init()
    site = load_site("aws-eu-west-1").value
    section = site.sagemaker
    assert section is not None
    assert (section.region, section.role) == ("eu-west-1", "arn:aws:iam::123456789012:role/lab")
    assert section.bucket == f"s3://{OWN}/hpctrain"
    # Those with a quota; the first one with GPUs is the default.
    found = [(one.name, one.default, one.gpus_per_node, one.max_nodes) for one in site.partitions]
    assert found == [("ml.g5.12xlarge", True, 4, 2), ("ml.m5.large", False, 0, 4)]
    assert (site.partitions[0].cpus_per_node, str(site.partitions[0].mem_per_node)) == (48, "192G")
    code, job = run("site", "show", "aws-eu-west-1", "--job")
    assert code == 0 and "container: " in job
    Path("job.yaml").write_text(job)
    assert run("render", "job.yaml", "--site", "aws-eu-west-1")[0] == 0


def test_what_the_user_may_not_read_is_a_question(account: TrainingService) -> None:
    for call in ("ListRoles", "DescribeInstanceTypes"):
        text = f"User: arn:aws:iam::123456789012:user/lab may not {call}"
        account.refused[call] = (9, "AccessDenied", text)
    output = init("mine")
    assert "AWS denies iam:ListRoles: User" in output
    assert "AWS denies ec2:DescribeInstanceTypes" in output
    text = Path("site_profiles/mine.yaml").read_text()
    assert 'role/NAME"  # no role was found that SageMaker may assume: which one?' in text
    assert f"# guessed: aws s3 mb s3://{OWN} makes it" in text
    assert "{name: ml.m5.large, max_nodes: 4}  # cores and GPUs?" in text


@pytest.mark.parametrize(
    ("variable", "message"),
    [("AWS_REGION", "no region: this shell has none"), ("AWS_ACCESS_KEY_ID", "no credentials")],
)
def test_an_incomplete_shell_writes_nothing(
    account: TrainingService, monkeypatch: pytest.MonkeyPatch, variable: str, message: str
) -> None:
    monkeypatch.delenv(variable)
    with pytest.raises(HpcTrainError, match=message):
        init()
    assert not Path("site_profiles").exists()


def test_sagemaker_is_one_kind_of_draft(account: TrainingService) -> None:
    code, output = run("site", "init", "--sagemaker", "--hosts", "a")
    assert code == 2 and "--sagemaker asks AWS" in output


@pytest.mark.process
def test_doctor_examines_shell_and_profile(
    account: TrainingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_bucket(account, OWN)
    init("mine")
    monkeypatch.setenv("HPCTRAIN_SITE", "mine")
    code, output = run("doctor", "--json")
    assert code in (0, 1)
    found = json.loads(output)["sagemaker"]
    assert found.pop("boto3")
    assert found == {
        "region": "eu-west-1",
        "credentials": "env",
        "account": "123456789012",
        "bucket": OWN,
        "role": "lab",
    }


def test_without_a_scheduler_init_says_what_it_looked_for(
    profiles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(profiles))
    for name in ("SLURM_CONF", "SLURM_CLUSTER_NAME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(
        HpcTrainError, match=r"neither Slurm \(scontrol\) nor PBS \(qstat\)"
    ) as error:
        run("site", "init")
    assert "site init --hosts a,b" in error.value.hint
    assert "site init --sagemaker" in error.value.hint
