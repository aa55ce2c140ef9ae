"""Clients of AWS, what its errors mean, and what would keep training jobs from starting."""

import os
import re
from functools import lru_cache
from typing import Any

from hpc_train.base.errors import HpcTrainError, PlanError, SiteProfileError, SubmitError
from hpc_train.base.extras import need
from hpc_train.sites.profile import SourcedSite

# What is waited for an answer, and how often: half a minute; for an upload, two.
_ANSWER_S, _ATTEMPTS = 8, 4
_UPLOAD_S, _UPLOADS = 30, 4


def region_of(site: SourcedSite) -> str:
    """Return the region of the profile, else that of the shell.

    Raises:
        SiteProfileError: neither names one.
    """
    check_boto3()
    from botocore.exceptions import BotoCoreError

    stated = site.value.sagemaker.region if site.value.sagemaker else None
    try:
        region = stated or region_of_shell()
    except BotoCoreError as failure:
        raise SiteProfileError(f"{site.near('sagemaker')}: {failure}", LOGIN) from None
    if not region:
        raise SiteProfileError(
            f"{site.near('sagemaker')}: no region: neither the profile nor this shell names one",
            "sagemaker.region: eu-west-1 in the profile, or export AWS_REGION=eu-west-1",
        )
    return region


def check_credentials(site: SourcedSite) -> None:
    """Check that there are credentials; only those of a login or role are requested from AWS.

    Raises:
        HpcTrainError: there are none, they have expired, or AWS_PROFILE names no profile, or one
            with a role that this user cannot assume.
    """
    check_boto3()
    try:
        found = session().get_credentials()
        if found is not None:
            found.get_frozen_credentials()
    except aws_errors() as failure:
        forget_session()
        raise explain(failure, site) from None
    if found is None:
        forget_session()
        raise SiteProfileError(
            f"{site.near('sagemaker')}: no credentials of AWS were found in this shell", LOGIN
        )


def client(service: str, region: str, attempts: int | None = None) -> Any:
    """Return a client that retries throttled calls, slower each time.

    An endpoint that accepts calls and never answers ends one after half a minute.

    Raises:
        MissingExtraError: boto3 is not installed.
    """
    check_boto3()
    from botocore.config import Config

    wait_s, tries = (_UPLOAD_S, _UPLOADS) if service == "s3" else (_ANSWER_S, _ATTEMPTS)
    config = Config(
        retries={"mode": "adaptive", "total_max_attempts": attempts or tries},
        connect_timeout=5,
        read_timeout=wait_s,
    )
    return session().client(service, region_name=region, config=config)


def check_boto3() -> None:
    """Check that boto3 is installed.

    Raises:
        MissingExtraError: with the command that installs it.
    """
    need("scheduler sagemaker", "sagemaker")


def region_of_shell() -> str | None:
    """Return the region of the environment, else that of the configuration."""
    # boto3 reads AWS_DEFAULT_REGION only; AWS's other tools read both.
    found = os.environ.get("AWS_REGION") or session().region_name
    return str(found) if found else None


def session() -> Any:
    """Return one session for all clients: each would log in, or request a code, again."""
    shell = {name: text for name, text in os.environ.items() if name.startswith("AWS_")}
    return _session_of(tuple(sorted({**shell, "HOME": os.environ.get("HOME", "")}.items())))


def forget_session() -> None:
    """Read the credentials again at the next call."""
    _session_of.cache_clear()


@lru_cache(maxsize=1)
def _session_of(shell: tuple[tuple[str, str], ...]) -> Any:
    import boto3

    return boto3.session.Session()


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
        return SubmitError(f"AWS refuses calls, because there are too many: {text}", hint)
    section = site.value.sagemaker if site else None
    call = str(getattr(failure, "operation_name", ""))
    found = None
    if call.startswith("AssumeRole"):
        found = ("sagemaker", f"AWS refuses the credentials: {call}: {text}", LOGIN)
    elif code in _BAD_KEYS:
        found = ("sagemaker", f"AWS refuses the credentials: {text}", LOGIN)
    elif code == "NoSuchBucket":
        bucket = "/".join(section.bucket.split("/")[:3]) if section else "s3://BUCKET"
        found = ("sagemaker.bucket", f"sagemaker.bucket: {text}", f"aws s3 mb {bucket}")
    elif _ROLE.search(text):
        role = section.role.rpartition("/")[2] if section else "ROLE"
        hint = f"aws iam get-role --role-name {role}   shows whether it exists and whom it trusts, "
        hint += "which has to be sagemaker.amazonaws.com; you need iam:PassRole for it"
        found = ("sagemaker.role", f"sagemaker.role: {text}", hint)
    elif "AccessDenied" in code:
        hint = f"the account's administrator adds the permission of {call or 'this call'}"
        found = ("sagemaker", f"AWS denies {call or 'it'}: {text}", hint)
    if found is not None:
        key, message, hint = found
        return SiteProfileError(f"{place_of(site, key)}{message}", hint)
    place = f"{where}: " if where else ""
    if code == "ResourceLimitExceeded":
        hint = "fewer nodes or another --partition; Service Quotas of SageMaker raises the limit"
        return PlanError(f"{place}the quota of the account: {text}", hint)
    return PlanError(f"{place}AWS refuses it: {text}", "hpctrain render FILE shows the request")


def _without_answer(failure: Exception, text: str, site: SourcedSite | None) -> HpcTrainError:
    """Return the error of a connection; or of the shell's configuration, with nothing sent."""
    from botocore.exceptions import ConnectionError, HTTPClientError, IncompleteReadError

    if not isinstance(failure, (ConnectionError, HTTPClientError, IncompleteReadError)):
        place = place_of(site, "sagemaker")
        return SiteProfileError(f"{place}the configuration of AWS in this shell: {text}", LOGIN)
    section = site.value.sagemaker if site else None
    stated = section.region if section else None
    place = site.near("sagemaker.region") if site and stated else "this shell"
    region = stated or region_of_shell()
    hint = f"try again; {place} names the region {region}" if region else "try again"
    return SubmitError(f"AWS does not answer: {text}", hint, transient=True)


def place_of(site: SourcedSite | None, key: str) -> str:
    """Return where a profile states a key, and a colon; empty without a profile."""
    return f"{site.near(key)}: " if site else ""
