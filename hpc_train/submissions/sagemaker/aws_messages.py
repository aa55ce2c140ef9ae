"""Errors of AWS -> sentences: the place, what is wrong, the next command."""

from __future__ import annotations

import re

from hpc_train.errors import HpcTrainError, PlanError, SiteProfileError, SubmitError
from hpc_train.model.site import SourcedSite
from hpc_train.submissions.sagemaker.aws_session import region_of_shell, unknown_region

LOGIN = "aws sso login, or aws configure; AWS_PROFILE names a profile"
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
# Not the ARN of a user who logged in, `arn:aws:sts::1:assumed-role/…`.
_ROLE = re.compile(r"assume (?:the )?role|pass role|iam:PassRole|role.{0,80}(?:trust|exists)", re.I)
_HIDDEN = re.compile(r"\bAKIA[A-Z0-9]{12,20}\b")


def aws_errors() -> tuple[type[Exception], ...]:
    """Return the errors that `explain` turns into sentences."""
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    return (BotoCoreError, ClientError, Boto3Error)


def code_of(failure: Exception) -> str:
    """Return the code of an error that AWS answered; empty if it did not answer."""
    response = getattr(failure, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))


def _call_of(failure: Exception) -> str:
    """Return the name of the call that AWS refused, such as PutObject."""
    return str(getattr(failure, "operation_name", ""))


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
        return _without_answer(failure, text, site)
    if code in _THROTTLED:
        hint = "try again in a minute; other programs of the account call it, too"
        return SubmitError(f"AWS refuses so many calls: {text}", hint)
    return _of_profile(code, text, site, _call_of(failure)) or _of_job(
        code, text, f"{where}: " if where else ""
    )


def _without_answer(failure: Exception, text: str, site: SourcedSite | None) -> HpcTrainError:
    """Return the error of a connection; or of the shell's configuration, with nothing sent."""
    from botocore.exceptions import ConnectionError, HTTPClientError, IncompleteReadError

    if not isinstance(failure, (ConnectionError, HTTPClientError, IncompleteReadError)):
        place = place_of(site, "sagemaker")
        return SiteProfileError(f"{place}the configuration of AWS in this shell: {text}", LOGIN)
    return SubmitError(f"AWS does not answer: {text}", _try_again(site), transient=True)


def _try_again(site: SourcedSite | None) -> str:
    """Return the hint, with the region that was asked, and a known one if it may be misspelt."""
    section = site.value.sagemaker if site else None
    stated = section.region if section else None
    region = stated or region_of_shell()
    if not region:
        return "try again"
    place = site.near("sagemaker.region") if site and stated else "this shell"
    unknown = unknown_region(region)
    return f"try again; {place} names the region {region}{unknown and f', {unknown}'}"


def _of_profile(code: str, text: str, site: SourcedSite | None, call: str) -> HpcTrainError | None:
    """Return the error for what the profile or the shell has to change."""

    section = site.value.sagemaker if site else None
    if code in _BAD_KEYS or call.startswith("AssumeRole"):
        said = f"{call}: {text}" if call.startswith("AssumeRole") else text
        return SiteProfileError(
            f"{place_of(site, 'sagemaker')}AWS refuses the credentials: {said}", LOGIN
        )
    if code == "NoSuchBucket":
        bucket = section.bucket.removeprefix("s3://").partition("/")[0] if section else "BUCKET"
        place = place_of(site, "sagemaker.bucket")
        return SiteProfileError(f"{place}sagemaker.bucket: {text}", f"aws s3 mb s3://{bucket}")
    if _ROLE.search(text):
        role = section.role.rpartition("/")[2] if section else "ROLE"
        hint = f"aws iam get-role --role-name {role}   shows whether it exists and whom it trusts, "
        hint += "which has to be sagemaker.amazonaws.com; you need iam:PassRole for it"
        return SiteProfileError(f"{place_of(site, 'sagemaker.role')}sagemaker.role: {text}", hint)
    if "AccessDenied" in code:
        hint = f"the account's administrator adds the permission of {call or 'this call'}"
        return SiteProfileError(
            f"{place_of(site, 'sagemaker')}AWS denies {call or 'it'}: {text}", hint
        )
    return None


def _of_job(code: str, text: str, place: str) -> HpcTrainError:
    """Return the error for a job that the account or the service does not accept."""
    if code == "ResourceLimitExceeded":
        hint = "fewer nodes or another --partition; Service Quotas of SageMaker raises the limit"
        return PlanError(f"{place}the quota of the account: {text}", hint)
    return PlanError(f"{place}AWS refuses it: {text}", "hpctrain render FILE shows the request")


def place_of(site: SourcedSite | None, key: str) -> str:
    """Return where a profile states a key, and a colon; empty without a profile."""
    return f"{site.near(key)}: " if site else ""
