"""This shell and a profile -> what would keep training jobs from starting."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from hpc_train.base.errors import HpcTrainError, SiteProfileError
from hpc_train.base.extras import EXTRAS, install_command, is_installed
from hpc_train.base.finding import Finding
from hpc_train.base.value import Value
from hpc_train.sagemaker.aws_client import (
    account_of_shell,
    aws_errors,
    check_credentials,
    code_of,
    credentials_from,
    explain,
    region_of,
)
from hpc_train.sites.profile import SourcedSite

_SIGNS = ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID")
_FILES = (".aws/config", ".aws/credentials")
_ID = "sagemaker"


class AccountCheck(Value, frozen=True, kw_only=True):
    """Rows of what was found, and the first problem, if there is one."""

    rows: tuple[tuple[str, str], ...] = ()
    problem: Finding | None = None


def uses_aws() -> bool:
    """Return whether the shell or user of this command is set up for AWS."""
    files = (Path.home() / file for file in _FILES)
    return any(map(os.environ.get, _SIGNS)) or any(map(Path.is_file, files))


def check_account(site: SourcedSite | None) -> AccountCheck:
    """Check the extra, region and credentials and, of a profile, the account of its role."""
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
