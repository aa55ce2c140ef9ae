"""One host of a training job: namespaces with a bound /opt/ml, in which the entrypoint runs."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hpc_train.lab.bridged_hosts import BridgedHost, bridged
from hpc_train.lab.run_program import ask, must
from hpc_train.model.value import Value
from hpc_train.subprocesses import start

PREFIX = "sagemaker-"
OPT_ML = Path("/opt/ml")
# Networks of jobs: 10.79.N.0/24, each in namespaces of its own.
_NETWORKS = 250
_ENTER = """\
hostname "$1" && mount --bind "$2" /etc/hosts && mount --bind "$3" /opt/ml &&
mount -t tmpfs -o mode=1777 shm /dev/shm && shift 3 && exec "$@"
"""


class HostPlace(Value, frozen=True, kw_only=True):
    """Names, address and files of a host; `folder` has its /opt/ml and its output."""

    job: str
    network: int
    number: int
    folder: Path

    @property
    def name(self) -> str:
        """Return the name in the job: algo-1, algo-2, …"""
        return f"algo-{self.number}"

    @property
    def namespace(self) -> str:
        """Return the name of the network namespace."""
        return f"{PREFIX}{self.network}-{self.number}"

    @property
    def address(self) -> str:
        """Return the address on the network of the job."""
        return f"10.79.{self.network}.{self.number}"

    @property
    def opt_ml(self) -> Path:
        """Return the folder that is /opt/ml in the container."""
        return self.folder / self.name / "ml"


def build_network(hosts: Sequence[HostPlace]) -> None:
    """Create the namespaces of a job, joined by a bridge in a namespace of its own."""
    ends = [
        BridgedHost(name=host.name, namespace=host.namespace, address=f"{host.address}/24")
        for host in hosts
    ]
    for command in bridged(f"{PREFIX}{hosts[0].network}", ends):
        must(command)


def remove_network(network: int) -> None:
    """Remove the namespaces of a network, as far as they exist."""
    for path in sorted(Path("/run/netns").glob(f"{PREFIX}{network}*")):
        if path.name == f"{PREFIX}{network}" or path.name.startswith(f"{PREFIX}{network}-"):
            ask(("ip", "netns", "del", path.name))


def free_network(taken: set[int]) -> int:
    """Return the number of a network that no job has."""
    return next(number for number in range(1, _NETWORKS) if number not in taken)


def write_config(host: HostPlace, hosts: Sequence[HostPlace], instance: str) -> None:
    """Write what a container finds below /opt/ml/input/config, and its /etc/hosts."""
    config = host.opt_ml / "input" / "config"
    for folder in (config, host.opt_ml / "output" / "data", host.opt_ml / "model"):
        folder.mkdir(parents=True, exist_ok=True)
    # The order is not that of the numbers, as in AWS.
    names = sorted((one.name for one in hosts), reverse=True)
    content = {
        "current_host": host.name,
        "current_instance_type": instance,
        "current_group_name": "homogeneousCluster",
        "hosts": names,
        "instance_groups": [
            {
                "instance_group_name": "homogeneousCluster",
                "instance_type": instance,
                "hosts": names,
            }
        ],
        "network_interface_name": "eth0",
    }
    (config / "resourceconfig.json").write_text(json.dumps(content), encoding="utf-8")
    lines = ["127.0.0.1 localhost", *(f"{one.address} {one.name}" for one in hosts)]
    (host.folder / host.name / "hosts").write_text("\n".join(lines) + "\n", encoding="utf-8")


class TrainingContainer:
    """A running container; its first process is that of the entrypoint."""

    def __init__(
        self, host: HostPlace, argv: Sequence[str], environment: dict[str, str], output: Path
    ) -> None:
        hosts = str(host.folder / host.name / "hosts")
        enter = (
            *("nsenter", f"--net=/run/netns/{host.namespace}", "unshare", "--uts", "--mount"),
            *("--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", _ENTER, "sh"),
            *(host.name, hosts, str(host.opt_ml)),
        )
        self.host = host
        self._process = start((*enter, *argv), output, environment)

    @property
    def exit_code(self) -> int | None:
        """Return the exit code; None while it runs."""
        return self._process.poll()

    def terminate(self) -> None:
        """Send TERM to the first process of the container, as AWS does."""
        for pid in self._first():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def kill(self) -> None:
        """End all processes of the container."""
        self._process.kill()
        self._process.wait()

    def _first(self) -> list[int]:
        pid = self._process.pid
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
        except OSError:
            return []
        return [int(word) for word in children.split()]


def container_environment(job: str, region: str) -> dict[str, str]:
    """Return the variables of a container; the programs are those of this machine."""
    kept = ("PATH", "HOME", "LANG", "VIRTUAL_ENV", "PYTHONPATH")
    found = {name: os.environ[name] for name in kept if name in os.environ}
    return {**found, "TRAINING_JOB_NAME": job, "AWS_REGION": region}


def clear(host: HostPlace) -> None:
    """Remove the files of a host, except its output."""
    shutil.rmtree(host.opt_ml, ignore_errors=True)
