"""The account of this shell -> its roles, buckets, and instance types with their quotas."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from hpc_train.model.live_account import InstanceType, LiveAccount
from hpc_train.submissions.sagemaker.aws_client import (
    account_of_shell,
    check_credentials,
    client,
    region_of,
)
from hpc_train.submissions.sagemaker.aws_messages import aws_errors, code_of, explain, message_of

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
        roles=tuple(dict.fromkeys([*_studio_role(), *_role_of(last), *roles])),
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


def _role_of(job: dict[str, Any]) -> Iterator[str]:
    if role := job.get("RoleArn"):
        yield str(role)


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
