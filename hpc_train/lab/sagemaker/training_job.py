"""A training job of the service: its life in a thread, and its description."""

from __future__ import annotations

import io
import tarfile
import threading
import time
from pathlib import Path
from typing import Any

from hpc_train.lab.sagemaker.faults import Faults
from hpc_train.lab.sagemaker.log_store import LogStore
from hpc_train.lab.sagemaker.object_store import ObjectStore
from hpc_train.lab.sagemaker.training_host import (
    HostPlace,
    TrainingContainer,
    build_network,
    clear,
    container_environment,
    remove_network,
    write_config,
)
from hpc_train.model.value import Value

# From TERM to KILL: AWS, StopTrainingJob.
_GRACE_S = 120.0
_DOWNLOAD_S = 60.0
_INTERRUPT_S = 2.0
_PAUSE_S = 0.1
_REASON_LENGTH = 1024
_NO_CAPACITY = (
    "CapacityError: Unable to provision requested ML compute capacity. "
    "Please retry using a different ML instance type."
)


class Around(Value, frozen=True, kw_only=True):
    """What jobs of a service share."""

    folder: Path
    region: str
    files: Any
    logs: Any
    faults: Any


class TrainingJob:
    """A job, from its creation to its end; other threads read its description and stop it."""

    def __init__(self, request: dict[str, Any], network: int, around: Around) -> None:
        self.request, self.network, self._around = request, network, around
        self.name = str(request["TrainingJobName"])
        self.arn = f"arn:aws:sagemaker:{around.region}:123456789012:training-job/{self.name}"
        self.created = time.time()
        self.status, self.secondary, self.reason = "InProgress", "Starting", ""
        self.started: float | None = None
        self.ended: float | None = None
        self._stop = threading.Event()
        self._files: ObjectStore = around.files
        self._logs: LogStore = around.logs
        self._faults: Faults = around.faults
        self._starts = 0
        self.thread = threading.Thread(target=self._live, daemon=True)

    @property
    def is_over(self) -> bool:
        """Whether the job has ended."""
        return self.status in ("Completed", "Failed", "Stopped")

    def stop(self) -> None:
        """Stop the job, in whatever state."""
        self.status, self.secondary = "Stopping", "Stopping"
        self._stop.set()

    def _live(self) -> None:
        count = self.request["ResourceConfig"]["InstanceCount"]
        folder = self._around.folder / "jobs" / self.name
        hosts = [
            HostPlace(job=self.name, network=self.network, number=number, folder=folder)
            for number in range(1, count + 1)
        ]
        try:
            self._run(hosts)
        except (OSError, ValueError) as failure:
            self._end("Failed", "Failed", f"InternalServerError: {failure}")
        finally:
            remove_network(self.network)
            for host in hosts:
                clear(host)

    def _run(self, hosts: list[HostPlace]) -> None:
        if self._faults.take("capacity"):
            self._end("Failed", "Failed", _NO_CAPACITY)
            return
        self._say("Downloading")
        if self._faults.take("slow_download"):
            self._stop.wait(_DOWNLOAD_S)
        build_network(hosts)
        for host in hosts:
            self._prepare(host, hosts)
        while not self._stop.is_set() and self._train(hosts):
            self._say("Restarting")
            for host in hosts:
                clear(host)
                self._prepare(host, hosts)
        if self._stop.is_set():
            self._end("Stopped", "Stopped")

    def _prepare(self, host: HostPlace, hosts: list[HostPlace]) -> None:
        instance = self.request["ResourceConfig"]["InstanceType"]
        write_config(host, hosts, instance)
        for channel in self.request["InputDataConfig"]:
            uri = channel["DataSource"]["S3DataSource"]["S3Uri"]
            self._files.download(uri, host.opt_ml / "input" / "data" / channel["ChannelName"])
        if "CheckpointConfig" in self.request:
            uri = self.request["CheckpointConfig"]["S3Uri"]
            self._files.download(uri, host.opt_ml / "checkpoints")

    def _train(self, hosts: list[HostPlace]) -> bool:
        """Run the containers to their end; return whether the job starts again."""
        self._say("Training")
        self.started = self.started or time.time()
        self._starts += 1
        containers = [self._container(host) for host in hosts]
        spare = self.request.get("EnableManagedSpotTraining", False)
        taken_away = bool(spare and self._faults.take("interrupt"))
        why = self._watch(containers, time.time() + _INTERRUPT_S if taken_away else None)
        self._finish(containers)
        self._upload(hosts)
        if why == "interrupt":
            self.secondary = "Interrupted"
            return True
        failed = [one for one in containers if one.exit_code]
        if why == "limit":
            self._end("Stopped", "MaxRuntimeExceeded")
        elif why == "failed":
            self._end("Failed", "Failed", self._reason(failed))
        elif why == "done":
            self._end("Completed", "Completed")
        return False

    def _container(self, host: HostPlace) -> TrainingContainer:
        argv = self.request["AlgorithmSpecification"]
        words = (*argv["ContainerEntrypoint"], *argv["ContainerArguments"])
        stream = f"{self.name}/{host.name}-{int(time.time() * 1000)}"
        output = host.folder / host.name / f"output-{self._starts}"
        self._logs.add(stream, output, int(time.time() * 1000))
        environment = container_environment(self.name, self._around.region)
        return TrainingContainer(host, words, environment, output)

    def _watch(self, containers: list[TrainingContainer], interrupted: float | None) -> str:
        """Wait for the first reason to end the containers."""
        limit = time.time() + self.request["StoppingCondition"]["MaxRuntimeInSeconds"]
        while True:
            codes = [one.exit_code for one in containers]
            if any(codes):
                return "failed"
            if all(code == 0 for code in codes):
                return "done"
            if self._stop.wait(_PAUSE_S):
                return "stopped"
            if time.time() > limit:
                return "limit"
            if interrupted is not None and time.time() > interrupted:
                return "interrupt"

    def _finish(self, containers: list[TrainingContainer]) -> None:
        """Send TERM to the containers that are left, and KILL after the grace time."""
        alive = [one for one in containers if one.exit_code is None]
        for one in alive:
            one.terminate()
        deadline = time.time() + _GRACE_S
        while any(one.exit_code is None for one in alive) and time.time() < deadline:
            time.sleep(_PAUSE_S)
        for one in containers:
            one.kill()

    def _upload(self, hosts: list[HostPlace]) -> None:
        """Store the results of all hosts as one archive, and the checkpoints of each."""
        if not self._stop.is_set():
            self._say("Uploading")
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for host in hosts:
                for path in sorted((host.opt_ml / "output" / "data").iterdir()):
                    archive.add(path, path.name)
        target = self.request["OutputDataConfig"]["S3OutputPath"].removeprefix("s3://")
        self._files.answer("PUT", f"/{target}/{self.name}/output/output.tar.gz", packed.getvalue())
        if "CheckpointConfig" in self.request:
            uri = self.request["CheckpointConfig"]["S3Uri"]
            for host in hosts:
                self._files.upload(host.opt_ml / "checkpoints", uri)

    def _reason(self, failed: list[TrainingContainer]) -> str:
        for one in failed:
            file = one.host.opt_ml / "output" / "failure"
            if file.is_file():
                text = file.read_text(encoding="utf-8", errors="replace")[:_REASON_LENGTH]
                return f"AlgorithmError: {text}, exit code: {one.exit_code}"
        return f"AlgorithmError: , exit code: {failed[0].exit_code if failed else 1}"

    def _say(self, secondary: str) -> None:
        if not self._stop.is_set():
            self.secondary = secondary

    def _end(self, status: str, secondary: str, reason: str = "") -> None:
        self.reason, self.ended = reason, time.time()
        self.status, self.secondary = status, secondary

    def summary(self) -> dict[str, Any]:
        """Return the entry of ListTrainingJobs."""
        found = {
            "TrainingJobName": self.name,
            "TrainingJobArn": self.arn,
            "CreationTime": self.created,
            "LastModifiedTime": self.ended or self.created,
            "TrainingJobStatus": self.status,
            "SecondaryStatus": self.secondary,
        }
        return found if self.ended is None else {**found, "TrainingEndTime": self.ended}

    def description(self) -> dict[str, Any]:
        """Return the answer of DescribeTrainingJob."""
        asked = {key: value for key, value in self.request.items() if key != "Tags"}
        found = {**asked, **self.summary()}
        if self.reason:
            found["FailureReason"] = self.reason
        if self.started is not None:
            found["TrainingStartTime"] = self.started
        if self.started is not None and self.ended is not None:
            seconds = max(1, round(self.ended - self.started))
            spare = self.request.get("EnableManagedSpotTraining", False)
            found["TrainingTimeInSeconds"] = seconds
            found["BillableTimeInSeconds"] = max(1, seconds // 2) if spare else seconds
        return found
