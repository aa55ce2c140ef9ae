"""Errors of AWS as sentences, with botocore's own exceptions."""

import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.base.errors import HpcTrainError, PlanError, SiteProfileError, SubmitError
from hpc_train.sagemaker.aws_client import check_credentials, explain, region_of
from tests.sagemaker.jobs import JOB, profile, site

pytest.importorskip("boto3")

exceptions = pytest.importorskip("botocore.exceptions")


@pytest.fixture(autouse=True)
def without_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable, file or metadata service of AWS."""
    import os

    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


def refused(code: str, message: str) -> Exception:
    answer = {"Error": {"Code": code, "Message": message}}
    failure = exceptions.ClientError(answer, "CreateTrainingJob")
    assert isinstance(failure, Exception)
    return failure


QUOTA = "The account-level service limit 'ml.p4d.24xlarge for training job usage' is 0 Instances"
ROLE = "Could not assume role arn:aws:iam::1:role/x. Please ensure that the role exists"
LOGIN = (
    "User: arn:aws:sts::123456789012:assumed-role/Admin/me is not authorized to perform: "
    "sagemaker:CreateTrainingJob because no identity-based policy allows the action"
)


@pytest.mark.parametrize(
    ("answer", "kind", "place", "hint"),
    [
        (("ResourceLimitExceeded", QUOTA), PlanError, "job.yaml:2: the quota", "Service Quotas"),
        (
            ("ValidationException", ROLE),
            SiteProfileError,
            "aws.yaml:7: sagemaker.role",
            "--role-name training ",
        ),
        (("AccessDeniedException", "no iam:PassRole"), SiteProfileError, "aws.yaml:7", "PassRole"),
        (("AccessDeniedException", "not authorized"), SiteProfileError, "aws.yaml:5", "permission"),
        (
            ("AccessDeniedException", LOGIN),
            SiteProfileError,
            "denies CreateT",
            "of CreateTrainingJ",
        ),
        (
            ("NoSuchBucket", "no bucket"),
            SiteProfileError,
            "aws.yaml:8: sagemaker.bucket",
            "s3://my-bucket",
        ),
        (("ExpiredTokenException", "expired"), SiteProfileError, "aws.yaml:5", "aws sso login"),
        (("ThrottlingException", "Rate exceeded"), SubmitError, "AWS refuses calls", "a minute"),
        (("ValidationException", "odd"), PlanError, "job.yaml:2: AWS refuses it: odd", "render"),
    ],
)
def test_each_error_has_place_and_next_command(
    tmp_path: Path, answer: tuple[str, str], kind: type[HpcTrainError], place: str, hint: str
) -> None:
    error = explain(refused(*answer), site(tmp_path), "job.yaml:2")
    assert type(error) is kind
    assert place in error.message
    assert hint in error.hint


def test_no_answer_is_transient(tmp_path: Path) -> None:
    failure = exceptions.EndpointConnectionError(endpoint_url="https://x")
    error = explain(failure, site(tmp_path))
    assert isinstance(error, SubmitError)
    assert error.transient
    assert "aws.yaml:6 names the region" in error.hint


def test_a_login_that_has_expired_is_not_an_aws_that_does_not_answer(tmp_path: Path) -> None:
    for failure in (
        exceptions.UnauthorizedSSOTokenError(),
        exceptions.SSOTokenLoadError(error_msg="Token for my-sso does not exist"),
        exceptions.NoCredentialsError(),
    ):
        error = explain(failure, site(tmp_path))
        assert type(error) is SiteProfileError
        assert error.message.startswith(f"{tmp_path}/aws.yaml:5: the configuration of AWS in")
        assert "aws sso login" in error.hint


def test_an_id_of_a_key_is_not_printed(tmp_path: Path) -> None:
    failure = refused("AccessDenied", "the key AKIAIOSFODNN7EXAMPLE may not")
    assert "AKIAIOSF" not in explain(failure, site(tmp_path)).message


def test_no_region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without = site(tmp_path, ("  region: eu-west-1\n", ""))
    with pytest.raises(SiteProfileError, match=r"aws\.yaml:5: no region") as failure:
        region_of(without)
    assert "AWS_REGION" in failure.value.hint
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-2")
    assert region_of(without) == "us-east-2"
    # boto3 alone does not read it, though AWS's other tools do.
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    assert region_of(without) == "eu-north-1"
    assert region_of(site(tmp_path)) == "eu-west-1"


def test_no_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SiteProfileError, match=r"aws\.yaml:5: no credentials of AWS"):
        check_credentials(site(tmp_path))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    check_credentials(site(tmp_path))


def hpctrain(folder: Path, *words: str, before: str = "") -> subprocess.CompletedProcess[str]:
    code = f"import sys\n{before}\nfrom hpc_train.cli.main import main\n"
    code += "try: main()\nfinally: print(*sorted(sys.modules), file=open('modules', 'w'))"
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_credentials_a_submission_leaves_nothing(tmp_path: Path) -> None:
    profile(tmp_path)
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "train.py").touch()
    done = hpctrain(tmp_path, "submit", "job.yaml", "--site", "aws.yaml")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "aws.yaml:5: no credentials of AWS" in done.stderr
    assert not (tmp_path / "results").exists()


def test_without_boto3_one_sentence_names_the_command(tmp_path: Path) -> None:
    profile(tmp_path)
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "train.py").touch()
    missing = "sys.modules['boto3'] = None"
    rendered = hpctrain(tmp_path, "render", "job.yaml", "--site", "aws.yaml", before=missing)
    assert rendered.returncode == 0, rendered.stderr
    assert '"TrainingJobName"' in rendered.stdout
    done = hpctrain(tmp_path, "submit", "job.yaml", "--site", "aws.yaml", before=missing)
    assert done.returncode == 2
    assert "scheduler sagemaker needs boto3; install it: " in done.stderr
    assert "[sagemaker]" in done.stderr
