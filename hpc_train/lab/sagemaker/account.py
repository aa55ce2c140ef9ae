"""The account of the service: who calls, its roles, buckets, quotas and types of instances.

STS, IAM and EC2 answer calls of the query protocol with XML.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from hpc_train.lab.sagemaker.faults import Faults
from hpc_train.lab.sagemaker.log_store import ServiceError

ACCOUNT = "123456789012"
# Role -> the service that may assume it.
ROLES = {"ec2": "ec2.amazonaws.com", "lab": "sagemaker.amazonaws.com"}
# Type -> quota, cores, memory [MiB], GPUs, their model.
TYPES: dict[str, tuple[int, int, int, int, str]] = {
    "ml.m5.large": (4, 2, 8192, 0, ""),
    "ml.g5.12xlarge": (2, 48, 196608, 4, "A10G"),
    "ml.p4d.24xlarge": (0, 96, 1179648, 8, "A100"),
}
Answer = tuple[int, bytes]
_Request = dict[str, list[str]]


class Account:
    """Answers of the services beside SageMaker that tell what an account has."""

    def __init__(self, buckets: Path, faults: Faults) -> None:
        self._buckets = buckets
        self._faults = faults

    def answer(self, body: bytes) -> Answer:
        """Return status and body for a call of the query protocol."""
        request = parse_qs(body.decode())
        action = request.get("Action", [""])[0]
        calls = {
            "GetCallerIdentity": self._caller,
            "ListRoles": self._roles,
            "GetRole": self._role,
            "DescribeInstanceTypes": self._types,
        }
        if action not in calls or (action != "GetCallerIdentity" and self._faults.take("denied")):
            text = f"User: arn:aws:iam::{ACCOUNT}:user/lab is not authorized to perform: {action}"
            return 403, _error(action, text)
        try:
            return 200, calls[action](request).encode()
        except ServiceError as failure:
            return 404, _error(action, failure.message, failure.code)

    def buckets(self) -> Answer:
        """Answer the list of buckets, of S3."""
        names = sorted(path.name for path in self._buckets.iterdir() if path.is_dir())
        rows = "".join(f"<Bucket><Name>{escape(name)}</Name></Bucket>" for name in names)
        text = f"<ListAllMyBucketsResult><Buckets>{rows}</Buckets></ListAllMyBucketsResult>"
        return 200, text.encode()

    def quotas(self, _: dict[str, Any]) -> dict[str, Any]:
        """Answer the quotas of SageMaker."""
        return {
            "Quotas": [
                {"QuotaName": f"{name} for training job usage", "Value": float(size[0])}
                for name, size in TYPES.items()
            ]
        }

    def _caller(self, _: _Request) -> str:
        who = f"<Arn>arn:aws:iam::{ACCOUNT}:user/lab</Arn><Account>{ACCOUNT}</Account>"
        return _result("GetCallerIdentity", who)

    def _role(self, request: _Request) -> str:
        name = request["RoleName"][0]
        if name not in ROLES:
            raise ServiceError("NoSuchEntity", f"The role with name {name} cannot be found.")
        return _result("GetRole", f"<Role>{_role(name)}</Role>")

    def _roles(self, _: _Request) -> str:
        rows = "".join(f"<member>{_role(name)}</member>" for name in ROLES)
        return _result("ListRoles", f"<IsTruncated>false</IsTruncated><Roles>{rows}</Roles>")

    def _types(self, request: _Request) -> str:
        wanted = {f"ml.{value}" for key, (value,) in request.items() if "Value" in key}
        found = {name: size for name, size in TYPES.items() if name in wanted}
        rows = "".join(_type(name.removeprefix("ml."), *size[1:]) for name, size in found.items())
        return f"<DescribeInstanceTypesResponse><instanceTypeSet>{rows}</instanceTypeSet>" + (
            "</DescribeInstanceTypesResponse>"
        )


def _type(name: str, cpus: int, memory: int, gpus: int, model: str) -> str:
    gpu = f"<gpus><item><name>{model}</name><count>{gpus}</count></item></gpus>" if gpus else ""
    return (
        f"<item><instanceType>{name}</instanceType>"
        f"<vCpuInfo><defaultVCpus>{cpus}</defaultVCpus></vCpuInfo>"
        f"<memoryInfo><sizeInMiB>{memory}</sizeInMiB></memoryInfo>"
        f"{f'<gpuInfo>{gpu}</gpuInfo>' if gpu else ''}</item>"
    )


def _result(action: str, inside: str) -> str:
    return f"<{action}Response><{action}Result>{inside}</{action}Result></{action}Response>"


def _role(name: str) -> str:
    policy = json.dumps({"Statement": [{"Principal": {"Service": ROLES[name]}}]})
    document = f"<AssumeRolePolicyDocument>{escape(policy)}</AssumeRolePolicyDocument>"
    return f"<Arn>arn:aws:iam::{ACCOUNT}:role/{name}</Arn>{document}"


def _error(action: str, text: str, code: str = "AccessDenied") -> bytes:
    found = f"<Error><Code>{code}</Code><Message>{text}</Message></Error>"
    if action.startswith("Describe"):
        return f"<Response><Errors>{found}</Errors></Response>".encode()
    return f"<ErrorResponse>{found}</ErrorResponse>".encode()
