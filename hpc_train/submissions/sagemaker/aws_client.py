"""Clients of AWS for a region, and whether this shell has a region and credentials."""

from __future__ import annotations

from typing import Any

from hpc_train.errors import SiteProfileError
from hpc_train.model.site import SourcedSite
from hpc_train.submissions.sagemaker.aws_messages import LOGIN, aws_errors, explain, place_of
from hpc_train.submissions.sagemaker.aws_session import (
    check_boto3,
    forget_session,
    region_of_shell,
    session,
)

# What is waited for an answer, and how often: two minutes in all; half a minute for a state or log,
# which the next command asks for again.
_ANSWER_S, _ATTEMPTS = 15, 6
_STATE_S, _STATE_ATTEMPTS = 8, 4
_UPLOAD_S, _UPLOADS = 30, 4


def region_of(site: SourcedSite | None) -> str:
    """Return the region of the profile, else that of the shell.

    Raises:
        SiteProfileError: neither names one.
    """
    check_boto3()
    from botocore.exceptions import BotoCoreError

    stated = site.value.sagemaker.region if site and site.value.sagemaker else None
    try:
        region = stated or region_of_shell()
    except BotoCoreError as failure:
        raise SiteProfileError(f"{place_of(site, 'sagemaker')}{failure}", LOGIN) from None
    if not region:
        neither = "neither the profile nor this shell names one" if site else "this shell has none"
        hint = "export AWS_REGION=eu-west-1"
        raise SiteProfileError(
            f"{place_of(site, 'sagemaker')}no region: {neither}",
            f"sagemaker.region: eu-west-1 in the profile, or {hint}" if site else hint,
        )
    return region


def check_credentials(site: SourcedSite | None) -> None:
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
            f"{place_of(site, 'sagemaker')}no credentials of AWS were found in this shell", LOGIN
        )


def credentials_from() -> str:
    """Return where boto3 found the credentials: environment variables, a file, a login, a role."""
    found = session().get_credentials()
    return str(found.method) if found is not None else "none"


def account_of_shell(region: str) -> str:
    """Return the number of the account whose credentials this shell has; AWS is asked once."""
    return str(client("sts", region, attempts=1).get_caller_identity()["Account"])


def client(service: str, region: str, attempts: int | None = None, *, states: bool = False) -> Any:
    """Return a client that retries throttled calls, slower each time.

    An endpoint that accepts calls and never answers ends one after two minutes; with `states`,
    after half a minute.

    Raises:
        MissingExtraError: boto3 is not installed.
    """
    check_boto3()
    from botocore.config import Config

    wait_s, tries = (_UPLOAD_S, _UPLOADS) if service == "s3" else (_ANSWER_S, _ATTEMPTS)
    if states:
        wait_s, tries = _STATE_S, _STATE_ATTEMPTS
    config = Config(
        retries={"mode": "adaptive", "total_max_attempts": attempts or tries},
        connect_timeout=5,
        read_timeout=wait_s,
    )
    return session().client(service, region_name=region, config=config)
