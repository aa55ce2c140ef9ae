"""Clients of AWS for a region, and its errors as sentences. The only module that imports boto3."""

from __future__ import annotations

import re
from typing import Any

from hpc_train.errors import HpcTrainError, PlanError, SiteProfileError, SubmitError
from hpc_train.extras import need
from hpc_train.model.site import SourcedSite

_WHAT = "scheduler sagemaker"
_LOGIN = "aws sso login, or aws configure; AWS_PROFILE names a profile"
_BAD_KEYS = (
    "ExpiredToken",
    "ExpiredTokenException",
    "UnrecognizedClientException",
    "InvalidClientTokenId",
    "InvalidAccessKeyId",
    "InvalidSignatureException",
    "SignatureDoesNotMatch",
    "RequestExpired",
)
_THROTTLED = (
    "ThrottlingException",
    "Throttling",
    "TooManyRequestsException",
    "RequestLimitExceeded",
    "SlowDown",
)
_ROLE = re.compile(r"(?:assume|pass).{0,40}\brole|iam:PassRole|role.{0,80}(?:trust|exists)", re.I)
_HIDDEN = re.compile(r"\bAKIA[A-Z0-9]{12,20}\b")


def check_boto3() -> None:
    """Check that boto3 is installed.

    Raises:
        MissingExtraError: with the command that installs it.
    """
    need(_WHAT, "sagemaker")


def region_of(site: SourcedSite) -> str:
    """Return the region of the profile, else that of the shell.

    Raises:
        SiteProfileError: neither names one.
    """
    check_boto3()
    stated = site.value.sagemaker.region if site.value.sagemaker else None
    region = stated or _session().region_name
    if not region:
        raise SiteProfileError(
            f"{site.near('sagemaker')}: no region: neither the profile nor this shell names one",
            "sagemaker.region: eu-west-1 in the profile, or export AWS_REGION=eu-west-1",
        )
    return str(region)


def check_credentials(site: SourcedSite) -> None:
    """Check that there are credentials; nothing is sent.

    Raises:
        SiteProfileError: there are none, or AWS_PROFILE names no profile.
    """
    check_boto3()
    from botocore.exceptions import BotoCoreError

    try:
        found = _session().get_credentials()
    except BotoCoreError as failure:
        raise SiteProfileError(f"{site.near('sagemaker')}: {failure}", _LOGIN) from None
    if found is None:
        raise SiteProfileError(
            f"{site.near('sagemaker')}: no credentials of AWS were found in this shell", _LOGIN
        )


def client(service: str, region: str) -> Any:
    """Return a client that retries throttled calls, slower each time.

    Raises:
        MissingExtraError: boto3 is not installed.
    """
    check_boto3()
    from botocore.config import Config

    config = Config(
        retries={"mode": "adaptive", "max_attempts": 6}, connect_timeout=10, read_timeout=60
    )
    return _session().client(service, region_name=region, config=config)


def aws_errors() -> tuple[type[Exception], ...]:
    """Return the errors that `explain` turns into sentences."""
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    return (BotoCoreError, ClientError, Boto3Error)


def code_of(failure: Exception) -> str:
    """Return the code of an error that AWS answered; empty if it did not answer."""
    response = getattr(failure, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))


def message_of(failure: Exception) -> str:
    """Return what AWS says, on one line, without ids of keys."""
    response = getattr(failure, "response", None) or {}
    text = str(response.get("Error", {}).get("Message", "") or failure)
    return _HIDDEN.sub("AKIA…", " ".join(text.replace("#015", " ").split()))


def explain(failure: Exception, site: SourcedSite | None, where: str = "") -> HpcTrainError:
    """Return the error of the user for one of AWS: the place, what is wrong, the next command.

    `where` is the place of the job. Without an answer of AWS the error is transient.
    """
    code, text = code_of(failure), message_of(failure)
    if not code:
        place = site.near("sagemaker.region") if site else ""
        hint = f"try again; {place} names the region" if place else "try again"
        return SubmitError(f"AWS does not answer: {text}", hint, transient=True)
    if code in _THROTTLED:
        hint = "try again in a minute; other programs of the account call it, too"
        return SubmitError(f"AWS refuses so many calls: {text}", hint)
    return _of_profile(code, text, site) or _of_job(code, text, f"{where}: " if where else "")


def _of_profile(code: str, text: str, site: SourcedSite | None) -> HpcTrainError | None:
    """Return the error for what the profile or the shell has to change."""

    def at(key: str) -> str:
        return f"{site.near(key)}: " if site else ""

    if code in _BAD_KEYS:
        return SiteProfileError(f"{at('sagemaker')}AWS refuses the credentials: {text}", _LOGIN)
    if code == "NoSuchBucket":
        place = at("sagemaker.bucket")
        return SiteProfileError(f"{place}sagemaker.bucket: {text}", "aws s3 mb s3://BUCKET")
    if _ROLE.search(text):
        hint = "its trust policy has to name sagemaker.amazonaws.com, and you need iam:PassRole"
        return SiteProfileError(f"{at('sagemaker.role')}sagemaker.role: {text}", hint)
    if "AccessDenied" in code:
        hint = "add the permission that it names"
        return SiteProfileError(f"{at('sagemaker')}AWS denies it: {text}", hint)
    return None


def _of_job(code: str, text: str, place: str) -> HpcTrainError:
    """Return the error for a job that the account or the service does not accept."""
    if code == "ResourceLimitExceeded":
        hint = "fewer nodes or another --partition; Service Quotas of SageMaker raises the limit"
        return PlanError(f"{place}the quota of the account: {text}", hint)
    return PlanError(f"{place}AWS refuses it: {text}", "hpctrain render FILE shows the request")


def _session() -> Any:
    import boto3

    return boto3.session.Session()
