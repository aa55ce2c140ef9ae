"""A SageMaker in this process: moto answers the calls of AWS, and jobs run in namespaces.

What moto lacks is here: a job has a life, names are unique, StopTrainingJob, and the newest job is
listed first, with its secondary status.
"""

import copy
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.core.exceptions import JsonRESTError
from moto.core.responses import EmptyResult
from moto.moto_api._internal.models import moto_api_backend
from moto.sagemaker.models import FakeTrainingJob, SageMakerModelBackend, sagemaker_backends
from moto.sagemaker.responses import SageMakerResponse
from moto.server import ThreadedMotoServer

from tests.servers.sagemaker_job import TrainingJob

ACCOUNT, REGION, BUCKET = "123456789012", "eu-west-1", "my-bucket"
PROFILE = f"""\
schema: 1
name: sagemaker
description: moto, whose jobs are namespaces of this machine
scheduler: sagemaker
sagemaker:
  region: {REGION}
  role: arn:aws:iam::{ACCOUNT}:role/lab
  bucket: s3://{BUCKET}/runs
  image: this-machine
launchers: {{default: torchrun, allowed: [torchrun, single, spawn]}}
partitions:
  - {{name: ml.m5.large, default: true, cpus_per_node: 2, max_nodes: 8, max_time: 1h}}
poll: 2s
"""
Wsgi = Callable[..., Iterable[bytes]]


class TrainingService:
    """The jobs of a test, the calls that were answered, and what goes wrong."""

    def __init__(self, url: str) -> None:
        self.calls: list[str] = []
        self.jobs: dict[str, TrainingJob] = {}
        self.folder = Path()
        self.environment = {
            "AWS_ENDPOINT_URL": url,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "lab",
            "AWS_SECRET_ACCESS_KEY": "lab",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        # What happens so often: `lost` answers to CreateTrainingJob; jobs without `capacity`, that
        # are an hour in `download`, or whose spare capacity is taken away in an `interrupt`.
        self.faults: Counter[str] = Counter()

    def client(self, service: str) -> Any:
        """Return a client of boto3."""
        url, keys = self.environment["AWS_ENDPOINT_URL"], ("lab", "lab")
        return boto3.client(service, REGION, None, True, None, url, *keys)

    def take(self, fault: str) -> bool:
        """Whether a fault happens now, which is counted."""
        self.faults[fault] -= 1
        return self.faults[fault] >= 0

    def add(self, names: Sequence[str]) -> None:
        """Create jobs that do not end, the last one the newest."""
        self.faults["download"] = 1
        self.client("sagemaker").create_training_job(
            TrainingJobName=names[0],
            RoleArn=f"arn:aws:iam::{ACCOUNT}:role/lab",
            AlgorithmSpecification={"TrainingImage": "this-machine", "TrainingInputMode": "File"},
            OutputDataConfig={"S3OutputPath": f"s3://{BUCKET}/runs"},
            ResourceConfig={
                "InstanceType": "ml.m5.large",
                "InstanceCount": 1,
                "VolumeSizeInGB": 1,
            },
            StoppingCondition={"MaxRuntimeInSeconds": 60},
        )
        known = sagemaker_backends[ACCOUNT][REGION].training_jobs
        first = known.pop(names[0])
        for name in reversed(names):
            known[name] = copy.copy(first)
            known[name].training_job_name = name

    def begin(self, request: FakeTrainingJob) -> None:
        """Let a job that was requested begin."""
        self.jobs[request.training_job_name] = TrainingJob(request, self)

    def around(self, answer: Wsgi) -> Wsgi:
        """Return moto's application with the calls noted, and some answers lost."""

        def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
            call = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
            self.calls.append(call or environ["PATH_INFO"])
            found = answer(environ, start)
            if call == "CreateTrainingJob" and self.take("lost"):
                environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            return found

        return app


@cache
def _server() -> TrainingService:
    """Start the server of this process, once."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    found = TrainingService(f"http://{host}:{port}")
    wsgi: Any = server._server
    wsgi.app = found.around(wsgi.app)

    create_in_moto = SageMakerModelBackend.create_training_job
    list_in_moto = SageMakerModelBackend.list_training_jobs

    def create(self: SageMakerModelBackend, training_job_name: str, **more: Any) -> FakeTrainingJob:
        if training_job_name in self.training_jobs:
            raise JsonRESTError("ResourceInUse", "Training job names must be unique within AWS.")
        made = create_in_moto(self, training_job_name, **more)
        found.begin(made)
        # The newest one is the first of a list.
        self.training_jobs = {training_job_name: made, **self.training_jobs}
        return made

    def listed(self: SageMakerModelBackend, **more: Any) -> dict[str, Any]:
        answer = list_in_moto(self, **more)
        for one in answer["TrainingJobSummaries"]:
            one["SecondaryStatus"] = self.training_jobs[one["TrainingJobName"]].secondary_status
        return answer

    def stop(self: SageMakerResponse) -> EmptyResult:
        job = found.jobs[self._get_param("TrainingJobName")]
        if job.is_over:
            text = "The request was rejected because the training job is in status"
            raise JsonRESTError("ValidationException", f"{text} {job.status}.")
        job.stop()
        return EmptyResult()

    SageMakerModelBackend.create_training_job = create  # type: ignore[method-assign, assignment]
    SageMakerModelBackend.list_training_jobs = listed  # type: ignore[method-assign, assignment]
    SageMakerResponse.stop_training_job = stop  # type: ignore[attr-defined]
    return found


@contextmanager
def serving(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TrainingService]:
    """Answer the calls of boto3 in this process and its children, from an empty account."""
    found = _server()
    found.folder = folder
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("HOME", str(folder))
    for name in ("AWS_PROFILE", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in found.environment.items():
        monkeypatch.setenv(name, value)
    found.client("s3").create_bucket(
        Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION}
    )
    found.calls.clear()
    try:
        yield found
    finally:
        for job in found.jobs.values():
            job.kill()
        for some in (found.jobs, found.faults):
            some.clear()
        moto_api_backend.reset()
