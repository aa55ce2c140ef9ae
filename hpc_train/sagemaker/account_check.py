"""This shell and a profile -> what would keep training jobs from starting, before one is submitted.

Asks AWS for the account, the bucket and the role; a permission that the user lacks is no problem.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from hpc_train.base.errors import HpcTrainError, SiteProfileError
from hpc_train.base.extras import EXTRAS, install_command, is_installed
from hpc_train.base.finding import Finding
from hpc_train.base.value import Value
from hpc_train.sagemaker.aws_client import (
    account_of_shell,
    aws_errors,
    check_credentials,
    client,
    code_of,
    credentials_from,
    explain,
    message_of,
    region_of,
    unknown_region,
)
from hpc_train.sagemaker.live_account import InstanceType, LiveAccount
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
        SiteProfileError: AWS starts jobs only with roles of the account; or there is no such
            region.
    """
    region = region_of(site)
    try:
        account = account_of_shell(region)
    except aws_errors() as failure:
        if code_of(failure) not in ("", "AccessDenied"):
            raise explain(failure, site) from None
        # A network without STS; the request itself tells.
        if not code_of(failure):
            _check_region(region, site)
        return
    section = site.value.sagemaker
    owner = section.role.split(":")[4] if section else account
    if owner != account:
        raise SiteProfileError(
            f"{site.near('sagemaker.role')}: sagemaker.role is one of the account {owner}, and the "
            f"credentials of this shell are those of {account}; AWS passes no role on to another",
            f"a role of {account}, or other credentials: AWS_PROFILE names a profile",
        )


def _check_region(region: str, site: SourcedSite) -> None:
    """Refuse a region that does not answer and that boto3 does not know, such as a misspelt one."""
    if unknown := unknown_region(region):
        raise SiteProfileError(
            f"{site.near('sagemaker.region')}: sagemaker.region: nothing answers in {region}, "
            f"{unknown}",
            "if AWS has opened it since: pip install --upgrade boto3",
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
    name = uri.removeprefix("s3://").partition("/")[0]
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
                "aws iam list-roles; hpctrain site init --sagemaker lists those of SageMaker",
            ) from None
        return f"{name}, not checked: this user may not read it"
    if SERVICE not in str(role.get("AssumeRolePolicyDocument")):
        raise SiteProfileError(
            f"{site.near('sagemaker.role')}: sagemaker.role: {name} does not trust {SERVICE}",
            f"aws iam get-role --role-name {name}   shows whom it trusts",
        )
    return name


SERVICE = "sagemaker.amazonaws.com"
# In a notebook of SageMaker Studio.
_STUDIO = Path("/opt/ml/metadata/resource-metadata.json")
_QUOTA = re.compile(r"(ml\.[a-z0-9.-]{1,60}) for training job usage")
_PAGE = 100
T = TypeVar("T")


def read_account() -> LiveAccount:
    """Ask AWS; what this user may not read is left out and said.

    Raises:
        HpcTrainError: no boto3, region or credentials; or AWS does not answer.
    """
    region = region_of(None)
    check_credentials(None)
    unread: list[str] = []
    try:
        account = account_of_shell(region)
    except aws_errors() as failure:
        raise explain(failure, None) from None
    last = _asked(unread, "ListTrainingJobs", lambda: _last_job(client("sagemaker", region))) or {}
    roles = _asked(unread, "iam:ListRoles", lambda: _roles(client("iam", region))) or []
    buckets = _asked(unread, "s3:ListAllMyBuckets", lambda: _buckets(client("s3", region))) or []
    quotas = _asked(unread, "servicequotas:ListServiceQuotas", lambda: _quotas(region)) or {}
    sizes = _asked(unread, "ec2:DescribeInstanceTypes", lambda: _sizes(region, quotas)) or {}
    found = LiveAccount(
        account=account,
        region=region,
        roles=tuple(filter(None, dict.fromkeys([*_studio_role(), last.get("RoleArn"), *roles]))),
        image=str(last.get("AlgorithmSpecification", {}).get("TrainingImage", "")),
        types=tuple(
            sizes.get(name) or InstanceType(name=name, most=quotas[name]) for name in quotas
        ),
        unread=tuple(unread),
    )
    first = [name for name in buckets if name == found.own_bucket]
    return msgspec.structs.replace(found, buckets=tuple(dict.fromkeys([*first, *buckets])))


def _asked(unread: list[str], permission: str, ask: Callable[[], T]) -> T | None:
    """Return the answer of AWS, or note why there is none: a permission that this user lacks."""
    try:
        return ask()
    except aws_errors() as failure:
        if not code_of(failure):
            raise explain(failure, None) from None
        unread.append(f"AWS denies {permission}: {message_of(failure)}")
        return None


def _last_job(service: Any) -> dict[str, Any]:
    jobs = service.list_training_jobs(MaxResults=1, SortBy="CreationTime", SortOrder="Descending")
    names = [job["TrainingJobName"] for job in jobs["TrainingJobSummaries"]]
    return dict(service.describe_training_job(TrainingJobName=names[0])) if names else {}


def _studio_role() -> Iterator[str]:
    try:
        found = msgspec.json.decode(_STUDIO.read_bytes())
    except (OSError, msgspec.DecodeError):
        return
    if isinstance(found, dict) and isinstance(role := found.get("ExecutionRoleArn"), str):
        yield role


def _roles(iam: Any) -> list[str]:
    """Return the roles that SageMaker may assume."""
    pages = iam.get_paginator("list_roles").paginate()
    roles = [role for page in pages for role in page["Roles"]]
    return [
        str(role["Arn"]) for role in roles if SERVICE in str(role.get("AssumeRolePolicyDocument"))
    ]


def _buckets(files: Any) -> list[str]:
    return [str(bucket["Name"]) for bucket in files.list_buckets()["Buckets"]]


def _quotas(region: str) -> dict[str, int]:
    """Return the most instances of each type for training jobs, of types with a quota above 0."""
    pages = client("service-quotas", region).get_paginator("list_service_quotas")
    found = {}
    for page in pages.paginate(ServiceCode="sagemaker", MaxResults=_PAGE):
        for quota in page["Quotas"]:
            name = _QUOTA.fullmatch(quota["QuotaName"])
            if name and quota["Value"] >= 1:
                found[name[1]] = int(quota["Value"])
    return dict(sorted(found.items()))


def _sizes(region: str, quotas: dict[str, int]) -> dict[str, InstanceType]:
    """Return cores, GPUs and memory of types, as EC2 states them for those without `ml.`."""
    found = {}
    names = [name.removeprefix("ml.") for name in quotas]
    pages = client("ec2", region).get_paginator("describe_instance_types")
    for first in range(0, len(names), _PAGE):
        wanted = [{"Name": "instance-type", "Values": names[first : first + _PAGE]}]
        for page in pages.paginate(Filters=wanted):
            sizes = [_size(one, quotas) for one in page["InstanceTypes"]]
            found.update({size.name: size for size in sizes})
    return found


def _size(one: dict[str, Any], quotas: dict[str, int]) -> InstanceType:
    name = f"ml.{one['InstanceType']}"
    gpus = one.get("GpuInfo", {}).get("Gpus", [])
    return InstanceType(
        name=name,
        most=quotas[name],
        cpus=one["VCpuInfo"]["DefaultVCpus"],
        gpus=sum(gpu["Count"] for gpu in gpus),
        gpu_model=str(gpus[0]["Name"]) if gpus else "",
        memory_mib=one["MemoryInfo"]["SizeInMiB"],
    )
