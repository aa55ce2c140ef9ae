"""The service: JSON 1.1 for SageMaker and CloudWatch, and S3, on one port of this machine.

Started as `python -m hpc_train.lab.sagemaker.service FOLDER PORT REGION`.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from hpc_train.lab.sagemaker.account import Account
from hpc_train.lab.sagemaker.faults import Faults
from hpc_train.lab.sagemaker.log_store import LogStore, ServiceError
from hpc_train.lab.sagemaker.object_store import ObjectStore
from hpc_train.lab.sagemaker.training_host import free_network
from hpc_train.lab.sagemaker.training_job import Around, TrainingJob

_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
_TOO_MANY = "Rate exceeded"
_NO_ROLE = (
    "Could not assume role {role}. Please ensure that the role exists and allows principal "
    "'sagemaker.amazonaws.com' to assume the role."
)
_NO_QUOTA = (
    "The account-level service limit '{type} for training job usage' is 0 Instances, with current "
    "utilization of 0 Instances and a request delta of {count} Instances."
)


class TrainingService:
    """The jobs of an account in one region."""

    def __init__(self, folder: Path, region: str) -> None:
        self.faults = Faults(folder)
        self.logs = LogStore(self.faults)
        self.files = ObjectStore(folder / "s3")
        self.account = Account(folder / "s3", self.faults)
        self.jobs: dict[str, TrainingJob] = {}
        self._lock = threading.Lock()
        self._around = Around(
            folder=folder, region=region, files=self.files, logs=self.logs, faults=self.faults
        )

    def calls(self) -> dict[str, Callable[[dict[str, Any]], dict[str, Any]]]:
        """Return the functions by their names in the header of a request."""
        return {
            "SageMaker.CreateTrainingJob": self._create,
            "SageMaker.DescribeTrainingJob": lambda request: self._job(request).description(),
            "SageMaker.ListTrainingJobs": self._list,
            "SageMaker.StopTrainingJob": self._stop,
            "SageMaker.ListTags": self._tags,
            "ServiceQuotasV20190624.ListServiceQuotas": self.account.quotas,
            "Logs_20140328.DescribeLogStreams": self.logs.describe,
            "Logs_20140328.GetLogEvents": self.logs.events,
        }

    def answer(self, target: str, request: dict[str, Any]) -> tuple[int, bytes]:
        """Return status and body for a request of JSON 1.1."""
        calls = self.calls()
        try:
            if target not in calls:
                raise ServiceError("UnknownOperationException", target)
            return 200, json.dumps(calls[target](request)).encode()
        except ServiceError as failure:
            said = {"__type": failure.code, "message": failure.message}
            return 400, json.dumps(said).encode()

    def _create(self, request: dict[str, Any]) -> dict[str, Any]:
        name, resources = request["TrainingJobName"], request["ResourceConfig"]
        if self.faults.take("throttle_create"):
            raise ServiceError("ThrottlingException", _TOO_MANY)
        if self.faults.take("no_role"):
            raise ServiceError("ValidationException", _NO_ROLE.format(role=request["RoleArn"]))
        if self.faults.take("no_quota"):
            text = _NO_QUOTA.format(
                type=resources["InstanceType"], count=resources["InstanceCount"]
            )
            raise ServiceError("ResourceLimitExceeded", text)
        if not _NAME.fullmatch(name):
            raise ServiceError("ValidationException", f"Invalid TrainingJobName: {name}")
        with self._lock:
            if name in self.jobs or self.faults.take("name_taken"):
                self.jobs.setdefault(name, self._other(request))
                raise ServiceError("ResourceInUse", "Training job names must be unique within AWS.")
            taken = {job.network for job in self.jobs.values() if not job.is_over}
            job = self.jobs[name] = self.new_job(request, free_network(taken))
        job.thread.start()
        if self.faults.take("lost_answer"):
            raise ConnectionResetError
        return {"TrainingJobArn": job.arn}

    def new_job(self, request: dict[str, Any], network: int = 0) -> TrainingJob:
        """Return a job that has not begun."""
        return TrainingJob(request, network, self._around)

    def _other(self, request: dict[str, Any]) -> TrainingJob:
        """Return a job of another user with the same name."""
        other = self.new_job({**request, "Tags": []})
        other.status, other.secondary, other.ended = "Completed", "Completed", other.created
        return other

    def _job(self, request: dict[str, Any]) -> TrainingJob:
        found = self.jobs.get(request["TrainingJobName"])
        if found is None:
            raise ServiceError("ValidationException", "Requested resource not found.")
        return found

    def _list(self, request: dict[str, Any]) -> dict[str, Any]:
        if self.faults.take("throttle_list"):
            raise ServiceError("ThrottlingException", _TOO_MANY)
        first, size = int(request.get("NextToken", 0)), request.get("MaxResults", 10)
        found = [
            job.summary()
            for job in sorted(self.jobs.values(), key=lambda job: -job.created)
            if request.get("NameContains", "") in job.name
            and job.created >= request.get("CreationTimeAfter", 0)
        ]
        answer: dict[str, Any] = {"TrainingJobSummaries": found[first : first + size]}
        return {**answer, "NextToken": str(first + size)} if first + size < len(found) else answer

    def _stop(self, request: dict[str, Any]) -> dict[str, Any]:
        job = self._job(request)
        if job.is_over:
            text = f"The request was rejected because the training job is in status {job.status}."
            raise ServiceError("ValidationException", text)
        job.stop()
        return {}

    def _tags(self, request: dict[str, Any]) -> dict[str, Any]:
        for job in self.jobs.values():
            if job.arn == request["ResourceArn"]:
                return {"Tags": job.request.get("Tags", [])}
        raise ServiceError("ResourceNotFound", "Requested resource not found.")


def handler(service: TrainingService) -> type[BaseHTTPRequestHandler]:
    """Return the class that answers the requests of a service."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            target = self.headers.get("X-Amz-Target")
            try:
                if target is None and self.path == "/" and self.command == "POST":
                    self._send(*service.account.answer(body))
                elif target is None and self.path.partition("?")[0] == "/":
                    self._send(*service.account.buckets())
                elif target is None:
                    self._send(*service.files.answer(self.command, self.path, body))
                else:
                    self._send(*service.answer(target, json.loads(body)))
            except ConnectionResetError:
                self.close_connection = True

        do_GET = do_PUT = do_POST = do_HEAD = _answer

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            sys.stdout.write(f"{self.headers.get('X-Amz-Target') or self.path} {args[1]}\n")
            sys.stdout.flush()

    return Handler


def main(folder: str, port: str, region: str) -> None:
    """Serve until the process is ended; its containers end with it."""
    service = TrainingService(Path(folder), region)
    ThreadingHTTPServer(("127.0.0.1", int(port)), handler(service)).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
