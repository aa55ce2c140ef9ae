"""A training job: its entrypoint runs in a namespace for each host, with /opt/ml laid out.

What happens is written into moto: status and times of the job, lines to CloudWatch, files to S3.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpc_train.base.processes import start
from tests.servers.networks import NetworkHost, join, remove

if TYPE_CHECKING:
    from moto.sagemaker.models import FakeTrainingJob

    from tests.servers.sagemaker import TrainingService

GROUP = "/aws/sagemaker/TrainingJobs"
_PAUSE_S = 0.1
# What is taken away runs so long before.
_INTERRUPT_S = 2.0
_NO_CAPACITY = "CapacityError: Unable to provision requested ML compute capacity."
_ENTER = """\
set -e
hostname "$1"
mount --bind "$2/hosts" /etc/hosts
# Nothing is made on the machine itself.
if [ ! -d /opt/ml ]; then
  mkdir "$2/opt"
  mount --rbind /opt "$2/opt"
  mount -t tmpfs opt /opt
  for one in "$2"/opt/*/; do
    mkdir "/opt/$(basename "$one")"
    mount --rbind "$one" "/opt/$(basename "$one")"
  done
  mkdir /opt/ml
fi
mount --bind "$2/ml" /opt/ml
mount -t tmpfs -o mode=1777 shm /dev/shm
shift 2
exec "$@"
"""


class Host:
    """A host of a job, its files, its process and how much of its output is in CloudWatch."""

    def __init__(self, folder: Path, prefix: str, number: int) -> None:
        self.name, self.folder = f"algo-{number}", folder / f"algo-{number}"
        self.namespace = f"{prefix}{number}"
        self.address = f"10.79.1.{number}"
        self.ml, self.output = self.folder / "ml", self.folder / "output"
        self.stream = ""
        self.read = 0
        self.process: subprocess.Popen[bytes] | None = None

    def lines(self) -> Iterator[str]:
        """Yield the whole lines that were printed since the last call."""
        text = self.output.read_bytes()[self.read :]
        for line in text[: text.rfind(b"\n") + 1].splitlines(keepends=True):
            self.read += len(line)
            yield line.decode(errors="replace").rstrip("\n")

    def terminate(self) -> None:
        """Send TERM to the first process of the container, as AWS does."""
        assert self.process is not None
        pid = self.process.pid
        with suppress(OSError):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
            for child in children.split():
                os.kill(int(child), signal.SIGTERM)


class TrainingJob:
    """The life of a job, in a thread."""

    def __init__(self, request: FakeTrainingJob, service: TrainingService) -> None:
        self._moto, self._service = request, service
        self._files, self._logs = service.client("s3"), service.client("logs")
        request.training_job_status, request.secondary_status = "InProgress", "Starting"
        request.training_start_time = request.training_end_time = None  # type: ignore[assignment]
        self._stopped, self._killed = threading.Event(), False
        # Several jobs may run at once, each in a network of its own.
        self._prefix = f"sagemaker-{len(service.jobs)}-"
        folder = service.folder / request.training_job_name
        count = int(request.resource_config["InstanceCount"])
        self._hosts = [Host(folder, self._prefix, number) for number in range(1, count + 1)]
        self._thread = threading.Thread(target=self._live)
        self._thread.start()

    @property
    def request(self) -> FakeTrainingJob:
        """Return what moto has of the job."""
        return self._moto

    @property
    def status(self) -> str:
        """Return the status."""
        return self._moto.training_job_status

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.status in ("Completed", "Failed", "Stopped")

    def stop(self) -> None:
        """Stop the job, in whatever state."""
        self._moto.training_job_status = self._moto.secondary_status = "Stopping"
        self._stopped.set()

    def kill(self) -> None:
        """End the job at once, and wait for its thread."""
        self._killed = True
        self._stopped.set()
        self._thread.join()

    def _begin(self, secondary: str) -> None:
        if not self._moto.training_job_status == "Stopping":
            self._moto.secondary_status = secondary

    def _end(self, status: str, secondary: str, reason: str = "") -> None:
        moto: Any = self._moto
        moto.training_end_time = moto.last_modified_time = now = datetime.now(timezone.utc)
        if moto.training_start_time is not None:
            seconds = max(1, round((now - moto.training_start_time).total_seconds()))
            moto.training_time_in_seconds = moto.billable_time_in_seconds = seconds
        if reason:
            moto.failure_reason = reason
        moto.secondary_status, moto.training_job_status = secondary, status

    def _live(self) -> None:
        if self._service.take("capacity"):
            self._end("Failed", "Failed", _NO_CAPACITY)
            return
        self._begin("Downloading")
        if self._service.take("download"):
            self._stopped.wait()
        try:
            while not self._stopped.is_set() and self._train():
                self._begin("Restarting")
        finally:
            remove(self._prefix)
        if self._stopped.is_set():
            self._end("Stopped", "Stopped")

    def _train(self) -> bool:
        """Run the containers to their end; return whether the job starts again."""
        moto: Any = self._moto
        join(
            f"{self._prefix}switch",
            [NetworkHost(one.name, one.namespace, f"{one.address}/24") for one in self._hosts],
        )
        for host in self._hosts:
            self._prepare(host)
        self._begin("Training")
        moto.training_start_time = moto.training_start_time or datetime.now(timezone.utc)
        for host in self._hosts:
            self._start(host)
        spare = moto.enable_managed_spot_training and self._service.take("interrupt")
        why = self._watch(time.monotonic() + _INTERRUPT_S if spare else float("inf"))
        self._finish()
        codes = {one: one.process.returncode for one in self._hosts if one.process is not None}
        remove(self._prefix)
        if why == "interrupt":
            return True
        if why == "failed":
            first = next(one for one, code in codes.items() if code)
            file = first.ml / "output" / "failure"
            said = file.read_text(errors="replace")[:1024] if file.is_file() else ""
            self._end("Failed", "Failed", f"AlgorithmError: {said}, exit code: {codes[first]}")
        elif why == "done":
            self._end("Completed", "Completed")
        return False

    def _prepare(self, host: Host) -> None:
        """Lay out /opt/ml; the order of the hosts is not that of their numbers, as in AWS."""
        shutil.rmtree(host.folder, ignore_errors=True)
        config = host.ml / "input" / "config"
        for folder in (config, host.ml / "output" / "data", host.ml / "model"):
            folder.mkdir(parents=True)
        names = sorted((one.name for one in self._hosts), reverse=True)
        instance = self._moto.resource_config["InstanceType"]
        content = {
            "current_host": host.name,
            "current_instance_type": instance,
            "hosts": names,
            "network_interface_name": "eth0",
        }
        (config / "resourceconfig.json").write_text(json.dumps(content))
        lines = ["127.0.0.1 localhost", *(f"{one.address} {one.name}" for one in self._hosts)]
        (host.folder / "hosts").write_text("\n".join(lines) + "\n")
        for channel in self._moto.input_data_config:
            uri = channel["DataSource"]["S3DataSource"]["S3Uri"]
            self._download(uri, host.ml / "input" / "data" / channel["ChannelName"])
        if self._moto.checkpoint_config:
            self._download(self._moto.checkpoint_config["S3Uri"], host.ml / "checkpoints")

    def _start(self, host: Host) -> None:
        spec = self._moto.algorithm_specification
        host.stream = f"{self._moto.training_job_name}/{host.name}-{int(time.time() * 1000)}"
        host.read = 0
        with suppress(self._logs.exceptions.ResourceAlreadyExistsException):
            self._logs.create_log_group(logGroupName=GROUP)
        self._logs.create_log_stream(logGroupName=GROUP, logStreamName=host.stream)
        enter = (
            *("nsenter", f"--net=/run/netns/{host.namespace}", "unshare", "--uts", "--mount"),
            *("--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", _ENTER, "sh"),
            *(host.name, str(host.folder)),
        )
        kept = ("PATH", "LANG", "VIRTUAL_ENV", "PYTHONPATH")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        environment |= {"TRAINING_JOB_NAME": self._moto.training_job_name, "HOME": "/root"}
        words = (*spec["ContainerEntrypoint"], *spec["ContainerArguments"])
        host.process = start((*enter, *words), host.output, environment)

    def _watch(self, interrupted: float) -> str:
        """Wait for the first reason to end the containers."""
        while True:
            codes = [one.process.poll() for one in self._hosts if one.process is not None]
            self._log()
            if any(codes):
                return "failed"
            if all(code == 0 for code in codes):
                return "done"
            if self._stopped.wait(_PAUSE_S):
                return "stopped"
            if time.monotonic() > interrupted:
                return "interrupt"

    def _log(self) -> None:
        now = int(time.time() * 1000)
        for host in self._hosts:
            events = [{"timestamp": now, "message": line} for line in host.lines() if line]
            if events:
                self._logs.put_log_events(
                    logGroupName=GROUP, logStreamName=host.stream, logEvents=events
                )

    def _finish(self) -> None:
        """Send TERM to the containers that are left, wait for them, and store what they leave."""
        processes = [one.process for one in self._hosts if one.process is not None]
        for host in self._hosts:
            host.terminate()
        while any(one.poll() is None for one in processes) and not self._killed:
            self._log()
            time.sleep(_PAUSE_S)
        for process in processes:
            process.kill()
            process.wait()
        self._log()
        self._begin("Uploading")
        for host in self._hosts if self._moto.checkpoint_config else ():
            bucket, _, key = self._moto.checkpoint_config["S3Uri"][5:].partition("/")
            for path in (host.ml / "checkpoints").rglob("*"):
                if path.is_file():
                    name = path.relative_to(host.ml / "checkpoints")
                    self._files.put_object(
                        Bucket=bucket, Key=f"{key}/{name}", Body=path.read_bytes()
                    )

    def _download(self, uri: str, target: Path) -> None:
        """Copy all objects below a prefix into a folder."""
        bucket, _, key = uri.removeprefix("s3://").rstrip("/").partition("/")
        target.mkdir(parents=True)
        for one in self._files.list_objects_v2(Bucket=bucket, Prefix=f"{key}/").get("Contents", ()):
            path = target / one["Key"].removeprefix(f"{key}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self._files.get_object(Bucket=bucket, Key=one["Key"])["Body"].read())
