"""This shell and a profile -> what would keep training jobs from starting, before one is submitted.

Asks AWS for the account, the bucket and the role; a permission that the user lacks is no problem.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hpc_train.base.errors import HpcTrainError, SiteProfileError
from hpc_train.base.extras import EXTRAS, install_command, is_installed
from hpc_train.base.finding import Finding
from hpc_train.base.value import Value
from hpc_train.sagemaker.aws_client import (
    account_of_shell,
    aws_errors,
    bucket_name,
    check_credentials,
    client,
    code_of,
    credentials_from,
    explain,
    region_of,
)
from hpc_train.sites.profile import SourcedSite

_SIGNS = ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID")
_FILES = (".aws/config", ".aws/credentials")
_ID = "sagemaker"
SERVICE = "sagemaker.amazonaws.com"


class AccountCheck(Value, frozen=True, kw_only=True):
    """Rows of what was found, and the first problem, if there is one."""

    rows: tuple[tuple[str, str], ...] = ()
    problem: Finding | None = None


def uses_aws() -> bool:
    """Return whether the shell or user of this command is set up for AWS."""
    files = (Path.home() / file for file in _FILES)
    return any(map(os.environ.get, _SIGNS)) or any(map(Path.is_file, files))


def check_account(site: SourcedSite | None) -> AccountCheck:
    """Check the extra, region and credentials and, of a profile, its role and bucket."""
    if not is_installed(_ID):
        message = f"{' and '.join(EXTRAS[_ID])} is not installed, which sites of SageMaker need"
        return AccountCheck(problem=_finding(message, install_command(_ID), site))
    rows: list[tuple[str, str]] = []
    try:
        # One by one: those before a problem are shown.
        rows.extend(_rows(site))
    except HpcTrainError as failure:
        problem = _finding(failure.message, failure.hint, site)
        return AccountCheck(rows=tuple(rows), problem=problem)
    return AccountCheck(rows=tuple(rows))


def check_owner(site: SourcedSite) -> None:
    """Compare the account of the role with that of the credentials, if AWS says it at once.

    Raises:
        SiteProfileError: AWS starts jobs only with roles of the account.
    """
    try:
        account = account_of_shell(region_of(site))
    except aws_errors() as failure:
        if code_of(failure) not in ("", "AccessDenied"):
            raise explain(failure, site) from None
        # A network without STS; the request itself tells.
        return
    section = site.value.sagemaker
    owner = section.role.split(":")[4] if section else account
    if owner != account:
        raise SiteProfileError(
            f"{site.near('sagemaker.role')}: sagemaker.role is one of the account {owner}, and the "
            f"credentials of this shell are those of {account}; AWS passes no role on to another",
            f"a role of {account}, or other credentials: AWS_PROFILE names a profile",
        )


def _finding(message: str, advice: str, site: SourcedSite | None) -> Finding:
    # Without a site of SageMaker, it may never be used.
    return Finding(id=_ID, severity="error" if site else "warning", message=message, advice=advice)


def _rows(site: SourcedSite | None) -> Iterator[tuple[str, str]]:
    import boto3

    yield "boto3", str(boto3.__version__)
    region = region_of(site)
    yield "region", region
    check_credentials(site)
    yield "credentials", credentials_from()
    try:
        yield "account", account_of_shell(region)
    except aws_errors() as failure:
        raise explain(failure, site) from None
    if site is not None and site.value.sagemaker is not None:
        check_owner(site)
        yield "bucket", _bucket(site, region, site.value.sagemaker.bucket)
        yield "role", _role(site, region, site.value.sagemaker.role)


def _bucket(site: SourcedSite, region: str, uri: str) -> str:
    name = bucket_name(uri)
    try:
        client("s3", region, attempts=1).head_bucket(Bucket=name)
    except aws_errors() as failure:
        if code_of(failure) == "404":
            raise SiteProfileError(
                f"{site.near('sagemaker.bucket')}: sagemaker.bucket: there is no bucket {name}",
                f"aws s3 mb s3://{name}",
            ) from None
        if code_of(failure) == "403":
            return f"{name}, which this user may not list"
        raise explain(failure, site) from None
    return name


def _role(site: SourcedSite, region: str, arn: str) -> str:
    name = arn.rpartition("/")[2]
    try:
        role: dict[str, Any] = client("iam", region, attempts=1).get_role(RoleName=name)["Role"]
    except aws_errors() as failure:
        if code_of(failure) == "NoSuchEntity":
            raise SiteProfileError(
                f"{site.near('sagemaker.role')}: sagemaker.role: there is no role {name}",
                "aws iam list-roles",
            ) from None
        return f"{name}, not checked: this user may not read it"
    if SERVICE not in str(role.get("AssumeRolePolicyDocument")):
        raise SiteProfileError(
            f"{site.near('sagemaker.role')}: sagemaker.role: {name} does not trust {SERVICE}",
            f"aws iam get-role --role-name {name}   shows whom it trusts",
        )
    return name
