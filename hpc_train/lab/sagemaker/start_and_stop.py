"""Starts and stops the service, and its profile `sagemaker`."""

from __future__ import annotations

import datetime
import os
import shutil
import socket
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec

from hpc_train.atomicfile import write_atomic
from hpc_train.errors import LabError
from hpc_train.lab.daemons import Daemon, boot_id, end, is_alive, members, start_time
from hpc_train.lab.profile import MARK, check_place, install, remove
from hpc_train.lab.requirements import check_namespaces, check_root
from hpc_train.lab.run_program import ask
from hpc_train.lab.sagemaker.training_host import OPT_ML, PREFIX
from hpc_train.model.value import Value
from hpc_train.subprocesses import start

RECORD = Path("/run/hpctrain-sagemaker.json")
FOLDER = "/var/tmp/hpctrain-sagemaker"  # noqa: S108 - root's own folder, checked before use
REGION = "eu-west-1"
BUCKET = "hpctrain"
_GRACE_S = 2.0
_WITHIN_S = 20.0
_PROFILE = """\
{mark}
schema: 1
name: sagemaker
description: A SageMaker on this one machine, made by hpctrain lab
scheduler: sagemaker
sources:
  - {{what: the settings of the lab, date: {date}, confidence: high}}
sagemaker:
  region: {region}
  role: arn:aws:iam::123456789012:role/lab
  bucket: s3://{bucket}/runs
  image: this-machine
launchers: {{default: torchrun, allowed: [torchrun, single, spawn]}}
partitions:
  - {{name: ml.m5.large, default: true, cpus_per_node: 2, max_nodes: 8, max_time: 1h}}
poll: 2s
"""
_ENV = """\
export AWS_ENDPOINT_URL={url}
export AWS_ACCESS_KEY_ID=lab AWS_SECRET_ACCESS_KEY=lab AWS_REGION={region}
"""


class RunningService(Value, frozen=True, kw_only=True):
    """A service that was started: its folder, address, process and profile."""

    folder: str
    url: str
    daemon: Daemon
    profile: str
    profile_folders: tuple[str, ...] = ()
    made_opt_ml: bool = False

    @property
    def env_file(self) -> str:
        """Return the file with the variables that boto3 needs."""
        return f"{self.folder}/env"


def read() -> RunningService | None:
    """Return the record, or None without a readable one."""
    try:
        return msgspec.json.decode(RECORD.read_bytes(), type=RunningService)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def start_service(folder: str = FOLDER) -> RunningService:
    """Start the service, unless it is running.

    Raises:
        LabError: it cannot be started; nothing is left behind.
    """
    check_root()
    check_namespaces()
    found = read()
    if found is not None and is_alive(found.daemon):
        return found
    if found is not None:
        _clear(found)
    check_place(_profile_path())
    with ExitStack() as undo:
        made = _make(Path(folder))
        undo.callback(_clear, made)
        write_atomic(RECORD, msgspec.json.encode(made))
        _await(made)
        undo.pop_all()
    return made


def stop_service() -> str:
    """Stop the service and all containers; return its folder, an empty text if there was none.

    Raises:
        LabError: something cannot be removed.
    """
    check_root()
    found = read()
    if found is None:
        return ""
    _clear(found)
    return found.folder


def _make(folder: Path) -> RunningService:
    if folder.exists() and not (folder / "s3").is_dir() and any(folder.iterdir()):
        raise LabError(f"{folder} exists and is not the folder of a SageMaker lab", "remove it")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "s3" / BUCKET).mkdir(parents=True)
    made_opt_ml = not OPT_ML.exists()
    OPT_ML.mkdir(parents=True, exist_ok=True)
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    (folder / "env").write_text(_ENV.format(url=url, region=REGION), encoding="utf-8")
    text = _PROFILE.format(
        mark=MARK, date=datetime.date.today().isoformat(), region=REGION, bucket=BUCKET
    )
    folders = install(_profile_path(), text)
    argv = [sys.executable, "-m", "hpc_train.lab.sagemaker.service", str(folder), str(port), REGION]
    process = start(argv, folder / "service.out", dict(os.environ))
    return RunningService(
        folder=str(folder),
        url=url,
        daemon=Daemon(
            name="sagemaker",
            pid=process.pid,
            started=start_time(process.pid) or 0,
            boot=boot_id(),
        ),
        profile=str(_profile_path()),
        profile_folders=folders,
        made_opt_ml=made_opt_ml,
    )


def _await(made: RunningService) -> None:
    """Wait until the service accepts connections.

    Raises:
        LabError: it ended, or does not.
    """
    port = int(made.url.rpartition(":")[2])
    deadline = time.monotonic() + _WITHIN_S
    while True:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if not is_alive(made.daemon) or time.monotonic() > deadline:
            raise LabError(f"the service did not start; see {made.folder}/service.out")
        time.sleep(0.05)


def _clear(found: RunningService) -> None:
    names = [path.name for path in Path("/run/netns").glob(f"{PREFIX}*")]

    def alive() -> set[int]:
        own = {found.daemon.pid} if is_alive(found.daemon) else set()
        return own | members(names)

    if not end(alive, _GRACE_S):
        raise LabError(f"these processes of the lab cannot be ended: {sorted(alive())}")
    for name in names:
        ask(("ip", "netns", "del", name))
    remove(Path(found.profile), found.profile_folders)
    if (Path(found.folder) / "s3").is_dir():
        shutil.rmtree(found.folder)
    if found.made_opt_ml and not any(OPT_ML.iterdir()):
        OPT_ML.rmdir()
    RECORD.unlink(missing_ok=True)


def _profile_path() -> Path:
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(config) / "hpctrain" / "sagemaker.yaml"


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
